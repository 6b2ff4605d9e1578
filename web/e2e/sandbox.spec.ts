/** The sandbox of a session: chosen at the start, shown, and changed later. */
import { expectAccessible } from "./access";
import { expect, test } from "./product";

test("a sandbox is chosen with the keyboard, shown with its hosts, and changed", async ({
  page,
  product,
}) => {
  await page.goto(
    await product.start({
      rules: [{ contains: "hello", replies: [{ parts: [{ type: "text", text: "Hello." }] }] }],
    }),
  );
  // Written first: to save the sandbox is not to start the task.
  await page.getByRole("textbox", { name: "Task" }).fill("hello");
  await page.getByRole("button", { name: "Sandbox: Off" }).focus();
  await page.keyboard.press("Enter");
  const form = page.getByRole("dialog", { name: "Sandbox" });
  await expect(form.getByRole("radio", { name: /^Off/ })).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await expect(form.getByRole("radio", { name: /^Files and network/ })).toBeChecked();
  await expectAccessible(page, "sandbox", "both");
  await form
    .getByRole("textbox", { name: "More hosts that it can reach" })
    .fill("packages.example.org\n*.example.com");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form).toBeHidden();
  await expect(page.getByRole("button", { name: "Sandbox: Files and network" })).toBeFocused();
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue("hello");
  await page.getByRole("button", { name: "Start session" }).click();
  await expect(page.getByRole("log")).toContainText("Hello.");
  const bar = page.getByRole("group", { name: "Session information" });
  await bar.getByRole("button", { name: "Sandbox: Files and network" }).click();
  await expect(form).toContainText("api.anthropic.com");
  await expect(form).toContainText("*.example.com");

  await page.reload();
  await bar.getByRole("button", { name: "Sandbox: Files and network" }).click();
  await form.getByRole("radio", { name: /^Off/ }).check();
  await form.getByRole("button", { name: "Save" }).click();
  await expect(bar.getByRole("button", { name: "Sandbox: Off" })).toBeVisible();
});

test("a host that is none is refused with what to write", async ({ page, product }) => {
  await page.goto(await product.start({ rules: [] }));
  await page.getByRole("button", { name: "Sandbox: Off" }).click();
  const form = page.getByRole("dialog", { name: "Sandbox" });
  await form.getByRole("radio", { name: /^Files and network/ }).check();
  await form.getByRole("textbox", { name: "More hosts that it can reach" }).fill("http://example.com");
  await form.getByRole("button", { name: "Save" }).click();
  await expect(form.getByRole("alert")).toContainText("“http://example.com” is no host");
  await form.getByRole("textbox", { name: "More hosts that it can reach" }).fill("example.com");
  await expect(form.getByRole("alert")).toBeHidden();
  await form.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("button", { name: "Sandbox: Files and network" })).toBeVisible();
});
