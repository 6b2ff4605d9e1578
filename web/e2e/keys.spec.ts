/** Keys and sign-ins: who can get in, as the person at the machine sees it. */
import { expectAccessible } from "./access";
import { expect, startSession, test } from "./product";

test("a key is made without a mouse, works within its limits, and is revoked", async ({ page, product }) => {
  const link = await product.start("demo");
  const origin = new URL(link).origin;
  await page.goto(link);
  await page.goto(`${origin}/#/access`);
  await expect(page.getByText("No keys yet")).toBeVisible();
  await page.getByRole("button", { name: "Create key" }).first().press("Enter");
  const dialog = page.getByRole("dialog");
  const name = dialog.getByRole("textbox", { name: "Name" });
  await expect(name).toBeFocused();

  // What is missing is said, and nothing is sent.
  await name.press("Enter");
  await expect(dialog.getByRole("alert")).toHaveText("Give the key a name.");
  await page.keyboard.type("nightly build");
  await dialog.getByRole("checkbox", { name: /^Approve/ }).press("Space");
  await dialog.getByRole("checkbox", { name: "Bypass permissions" }).press("Space");
  await dialog.getByRole("textbox", { name: "Tools that it may grant" }).fill("Read, Bash(git *)");
  await dialog.getByRole("textbox", { name: /^Budget/ }).fill("nothing");
  await dialog.getByRole("textbox", { name: /^Folders in which/ }).fill("/nowhere");
  await expectAccessible(page, "a new key");
  await name.press("Enter");
  await expect(dialog.getByRole("alert")).toHaveText("The budget is a number above 0.");
  await dialog.getByRole("textbox", { name: /^Budget/ }).fill("2.5");
  await name.press("Enter");
  // The server says what only it can know.
  await expect(dialog.getByRole("alert")).toHaveText(/working directory does not exist/);
  await dialog.getByRole("textbox", { name: /^Folders in which/ }).fill(product.project);
  await name.press("Enter");

  // Shown this once, ready to be copied.
  const secret = dialog.getByRole("textbox", { name: "Key", exact: true });
  await expect(secret).toBeFocused();
  const key = await secret.inputValue();
  expect(key).toMatch(/^tiller_[0-9a-f]{64}$/);
  await expectAccessible(page, "a key that was made");
  await page.getByRole("button", { name: "I have copied it" }).press("Enter");
  await expect(dialog).toBeHidden();
  const row = page.getByRole("listitem").filter({ hasText: "nightly build" });
  for (const words of ["Read", "Run", "Bash(git *)", "$2.50", product.project, "never used"])
    await expect(row).toContainText(words);
  await expect(row).not.toContainText("Approve");
  expect(await page.content()).not.toContain(key);
  // This tab has made it: there is nothing to announce.
  await expect(page.getByText("A new key was created")).toBeHidden();

  const status = async () => {
    const answer = await fetch(`${origin}/api/system`, { headers: { "X-API-Key": key } });
    return answer.status;
  };
  expect(await status()).toBe(200);
  await page.reload();
  await expect(row).toContainText("last used");
  await row.getByRole("button", { name: "Revoke nightly build" }).press("Enter");
  await expect(dialog.getByRole("radio", { name: /^Stop them/ })).toBeChecked();
  await dialog.getByRole("radio", { name: /^Let them go on/ }).check();
  await expectAccessible(page, "a key that is revoked");
  await dialog.getByRole("button", { name: "Revoke" }).press("Enter");
  await expect(page.getByText("No keys yet")).toBeVisible();
  expect(await status()).toBe(401);
});

test("a key or a browser that comes while a page is open is announced there", async ({
  page,
  product,
  browser,
}) => {
  await startSession(page, await product.start("demo"), "show me around");
  await product.command("key", "create", "from a terminal", "--scope", "read");
  const announced = page.getByRole("dialog").filter({ hasText: "A new key was created: from a terminal" });
  await expect(announced).toContainText("If this was not you, revoke it.");
  await announced.getByRole("button", { name: "Review" }).click();
  await expect(page.getByRole("listitem").filter({ hasText: "from a terminal" })).toBeVisible();

  // Another browser, with a link of its own. It hears nothing of itself.
  const context = await browser.newContext();
  const other = await context.newPage();
  await other.goto((await product.command("link")).trim());
  await expect(page.getByText("A new browser has signed in")).toBeVisible();
  await expect(page.getByRole("button", { name: /^Sign out Chrome/ })).toHaveCount(2);
  await expect(other.getByRole("navigation").first()).toBeVisible();
  await expect(other.getByText("A new browser has signed in")).toBeHidden();
  await context.close();
});
