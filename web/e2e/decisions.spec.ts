/** What the agent asks, and what the user answers. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attend, expect, say, startSession, test, tool } from "./product";

const command = (text: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command: text, description: "Try it" } }],
});
const bash = (input: Record<string, unknown>) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input }],
});
const text = (words: string) => ({ parts: [{ type: "text" as const, text: words }] });

test("'always allow' shows its rule, and the next such command runs without asking", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "first time", replies: [command("touch marker"), text("First done.")] },
      { contains: "second time", replies: [command("touch marker"), text("Second done.")] },
    ],
  });
  const marker = join(product.project, "marker");
  await startSession(page, link, "first time");
  const permission = page.getByRole("group", { name: "Permission for Bash" });
  await expect(permission).toContainText("“Always allow” also adds:");
  await expect(permission).toContainText("Bash(touch marker *)");
  await attend(permission);
  await page.keyboard.press("a");
  await expect(page.getByText("First done.")).toBeVisible();

  rmSync(marker);
  await say(page, "second time");
  await expect(page.getByText("Second done.")).toBeVisible();
  expect(existsSync(marker)).toBe(true);
});

test("a decision is made from the empty message field, shows every field, and one key never answers two", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      {
        contains: "three files",
        replies: [
          bash({ command: "touch one\necho second line", description: "Try it", timeout: 7777 }),
          bash({ command: "touch two" }),
          bash({ command: "touch \u202ethree" }),
          text("Done with it."),
        ],
      },
    ],
  });
  const made = (name: string) => existsSync(join(product.project, name));
  await startSession(page, link, "three files");
  const permission = page.getByRole("group", { name: "Permission for Bash" });
  await expect(permission).toContainText("echo second line");
  await expect(permission.getByRole("definition").filter({ hasText: "7777" })).toBeVisible();
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill("half a thought");
  await expect(permission).toHaveAttribute("aria-busy", "false");
  // In a field with text the keys are the field's.
  await field.press("Control+Enter");
  await field.fill("");
  expect(made("one")).toBe(false);
  await field.press("Control+Enter");
  // Pressed again as soon as the next request is there, before anyone could have read it.
  await expect(permission).toContainText("touch two");
  await field.press("Control+Enter");
  await expect(permission).toHaveAttribute("aria-busy", "false");
  expect(made("one")).toBe(true);
  expect(made("two")).toBe(false);
  await expect(field).toBeFocused();
  await field.press("Alt+d");
  await page.getByRole("textbox", { name: "Reason" }).fill("not this one");
  await page.keyboard.press("Enter");

  await expect(permission).toContainText("touch \\u{202e}three");
  await expect(permission).toHaveAttribute("aria-busy", "false");
  // The focus has moved on to the next request, where a letter is enough, also with Caps Lock.
  await expect(permission).toBeFocused();
  await page.keyboard.press("Shift+Y");
  await expect(page.getByText("Done with it.")).toBeVisible();
  await expect(field).toBeFocused();
  expect(made("two")).toBe(false);
});

test("an edit shows its difference before it is made, and y allows it", async ({ page, product }) => {
  const file = join(product.project, "greeting.txt");
  writeFileSync(file, "one\nhello\nthree\n");
  const link = await product.start({
    rules: [
      {
        contains: "change the greeting",
        replies: [
          { parts: [{ type: "tool_use", name: "Read", input: { file_path: file } }] },
          {
            parts: [
              {
                type: "tool_use",
                name: "Edit",
                input: { file_path: file, old_string: "hello", new_string: "good day" },
              },
            ],
          },
          text("Changed."),
        ],
      },
    ],
  });
  await startSession(page, link, "change the greeting");
  const permission = page.getByRole("group", { name: "Permission for Edit" });
  await expect(permission.getByRole("row", { name: "hello" })).toBeVisible();
  await expect(permission.getByRole("row", { name: "good day" })).toBeVisible();
  expect(readFileSync(file, "utf8")).toContain("hello");

  await attend(permission);
  await page.keyboard.press("y");
  await expect(page.getByText("Changed.")).toBeVisible();
  expect(readFileSync(file, "utf8")).toBe("one\ngood day\nthree\n");
  // The finished card shows the agent's own patch, with the lines around it.
  await expect(tool(page, "Edit").getByRole("row", { name: "one" })).toBeVisible();
  await tool(page, "Read").getByRole("button", { name: /Read/ }).first().click();
  await expect(tool(page, "Read")).toContainText("three");
});

const questions = {
  questions: [
    {
      question: "Which database?",
      header: "Store",
      multiSelect: false,
      options: [
        { label: "SQLite", description: "One file" },
        { label: "PostgreSQL", description: "A server" },
      ],
    },
    {
      question: "What must it survive?",
      header: "Failures",
      multiSelect: true,
      options: [
        { label: "A crash", description: "Sudden end" },
        { label: "A full disk", description: "No room" },
      ],
    },
  ],
};

test("questions are answered with options and in the user's own words", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "ask me",
        replies: [
          { parts: [{ type: "tool_use", name: "AskUserQuestion", input: questions }] },
          text("Heard: {{tool_result}}"),
        ],
      },
    ],
  });
  await startSession(page, link, "ask me");
  const form = page.getByRole("form", { name: "Questions of the agent" });
  await expect(form.getByRole("button", { name: "Confirm" })).toBeDisabled();
  // Nothing else is said before the answer, but all of it can be stopped.
  const field = page.getByRole("textbox", { name: "Message" });
  await expect(field).toBeDisabled();
  await expect(page.getByRole("button", { name: "Stop", exact: true })).toBeEnabled();
  await form.getByRole("radio", { name: /SQLite/ }).check();
  await form.getByRole("checkbox", { name: /A full disk/ }).check();
  await form.getByRole("checkbox", { name: "Other" }).check();
  await form.getByRole("textbox", { name: "Your own answer" }).fill("a tired operator");
  await form.getByRole("button", { name: "Confirm" }).click();

  await expect(page.getByText(/Heard: .*SQLite.*A full disk, a tired operator/s)).toBeVisible();
  await expect(field).toBeEnabled();
  await expect(tool(page, "Question")).toContainText("A full disk, a tired operator");
});

test("a question can be cancelled", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "ask me",
        replies: [
          { parts: [{ type: "tool_use", name: "AskUserQuestion", input: questions }] },
          text("Never mind."),
        ],
      },
    ],
  });
  await startSession(page, link, "ask me");
  await page
    .getByRole("form", { name: "Questions of the agent" })
    .getByRole("button", { name: "Cancel" })
    .click();
  await expect(page.getByText("Never mind.")).toBeVisible();
  await expect(tool(page, "Question")).toHaveAttribute("data-state", "denied");
});

const plan = (words: string) => ({
  parts: [{ type: "tool_use" as const, name: "ExitPlanMode", input: { plan: words } }],
});

test("a plan is read, sent back with a remark, and approved", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "make a plan",
        replies: [
          plan("# The plan\n\n1. Do it"),
          plan("# The better plan\n\n1. Do it well"),
          {
            parts: [
              {
                type: "tool_use",
                name: "Write",
                input: { file_path: join(product.project, "made.txt"), content: "made\n" },
              },
            ],
          },
          text("On it: {{tool_result}}"),
        ],
      },
    ],
  });
  await page.goto(link);
  await page.getByRole("combobox", { name: "Permission mode" }).click();
  await page.getByRole("option", { name: /^Plan/ }).click();
  await page.getByRole("textbox", { name: "Task" }).fill("make a plan");
  await page.getByRole("button", { name: "Start session" }).click();

  const panel = page.getByRole("region", { name: "Plan to approve" });
  await expect(panel.getByRole("heading", { name: "The plan" })).toBeVisible();
  await panel.getByRole("button", { name: "Keep planning…" }).click();
  await panel.getByRole("textbox", { name: "Feedback" }).fill("do it better");
  await page.keyboard.press("Enter");

  await expect(panel.getByRole("heading", { name: "The better plan" })).toBeVisible();
  // What is approved says how it goes on: here without asking for each file.
  await expect(panel.getByRole("radio", { name: /^Ask first/ })).toBeChecked();
  await panel.getByRole("radio", { name: /^Accept edits/ }).check();
  await panel.getByRole("button", { name: "Approve the plan" }).click();
  await expect(page.getByText("On it:")).toBeVisible();
  await expect(page.getByRole("combobox", { name: "Permission mode" })).toHaveText("Accept edits");
  expect(readFileSync(join(product.project, "made.txt"), "utf8")).toBe("made\n");
  const heard = JSON.stringify(await product.model?.requests());
  expect(heard).toContain("do it better");
});
