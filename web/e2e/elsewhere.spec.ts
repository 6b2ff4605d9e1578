/** A page that comes from another machine, without TLS: browsers keep some of what they can do from it. */
import { expect, test, watchFor } from "./product";

test.use({
  launchOptions: async ({ launchOptions }, provide) =>
    provide({
      ...launchOptions,
      args: [...(launchOptions.args ?? []), "--host-resolver-rules=MAP desk.test 127.0.0.1"],
    }),
});

test("what is copied is copied there, too", async ({ page, product }) => {
  product.configure('allowed_hosts = ["desk.test"]');
  const link = new URL(await product.start("demo"));
  link.hostname = "desk.test";
  await page.goto(link.href);
  expect(await page.evaluate(() => isSecureContext)).toBe(false);
  const task = page.getByRole("textbox", { name: "Task" });
  await task.fill("show me around");
  await task.press("Enter");
  const bar = page.getByRole("group", { name: "Session information" });
  const copied = await watchFor(page, "Copied");
  await bar.getByRole("button", { name: "Copy session id" }).click();
  await copied();
  const id = new URL(page.url()).hash.slice(4);
  const message = page.getByRole("textbox", { name: "Message" });
  await message.press("Control+v");
  await expect(message).toHaveValue(id);

  // From a menu, which has the focus to itself.
  await message.fill("");
  await page.getByRole("main").getByRole("button", { name: "Actions for show me around" }).click();
  const told = await watchFor(page, "The session id is copied.");
  await page.getByRole("menuitem", { name: "Copy session id" }).click();
  await told();
  await message.press("Control+v");
  await expect(message).toHaveValue(id);
});
