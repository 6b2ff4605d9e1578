/** What people see who have no Claude Code yet. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test, tool } from "./product";

test("the first run without Claude Code leads to a tour", async ({ page, product }) => {
  await page.goto(await product.startFirst());
  const banner = page.getByRole("complementary", { name: "This is a demo." });
  await expect(banner).toContainText("npm install -g @anthropic-ai/claude-code");
  await page.getByRole("textbox", { name: "Task" }).fill("show me around");
  await page.getByRole("textbox", { name: "Task" }).press("Enter");

  await expect(page.getByRole("heading", { name: "Hello, I am the demo agent" })).toBeVisible();
  await expect(tool(page, "To-dos").first()).toContainText("Show a tool that needs permission");

  const bash = page.getByRole("group", { name: "Permission for Bash" });
  await expect(bash).toContainText("ls");
  await bash.getByRole("button", { name: /^Allow/ }).click();

  const write = page.getByRole("group", { name: "Permission for Write" });
  await expect(write).toContainText("# Tiller demo");
  await write.getByRole("button", { name: /^Allow/ }).click();

  const form = page.getByRole("form", { name: "Questions of the agent" });
  await form.getByRole("radio", { name: /With both/ }).check();
  await form.getByRole("button", { name: "Confirm" }).click();

  await expect(page.getByRole("heading", { name: "That was the tour" })).toBeVisible();
  await expect(page.getByRole("cell", { name: "tiller-demo.md was written" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("$0.00");
  expect(existsSync(join(product.project, "tiller-demo.md"))).toBe(true);
});

test.describe("in Chinese", () => {
  test.use({ locale: "zh-CN" });

  test("the demo tour speaks Chinese, and the language can be switched", async ({ page, product }) => {
    await page.goto(await product.start("demo"));
    await expect(page.getByRole("heading", { name: "想做点什么？" })).toBeVisible();
    await expect(page.locator("html")).toHaveAttribute("lang", "zh-CN");
    await page.getByRole("textbox", { name: "任务" }).press("Enter");
    await expect(page.getByRole("alert")).toHaveText("请输入任务描述");
    await page.getByRole("textbox", { name: "任务" }).fill("给我看看演示");
    await page.getByRole("textbox", { name: "任务" }).press("Enter");
    await expect(page.getByRole("heading", { name: "你好，我是演示智能体" })).toBeVisible();
    await expect(page.getByRole("button", { name: /^允许/ })).toBeVisible();

    await page.getByRole("button", { name: "偏好设置" }).click();
    await page.getByRole("menuitemradio", { name: "English" }).click();
    await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
    await page.reload();
    await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  });
});
