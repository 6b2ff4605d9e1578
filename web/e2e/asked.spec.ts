/** What is asked beside permissions: forms of MCP servers, callbacks of hooks, and who drives a conversation. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { examine } from "./access";
import { attend, expect, say, startSession, test, tool } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const call = (name: string, input: Record<string, unknown> = {}) => ({
  parts: [{ type: "tool_use" as const, name, input }],
});

test("an MCP server's form is filled in, survives a reload, and can be declined", async ({
  page,
  product,
}) => {
  writeFileSync(
    join(product.claudeHome, "../.claude.json"),
    JSON.stringify({
      mcpServers: {
        desk: {
          command: process.execPath,
          args: [fileURLToPath(new URL("./mcp-server.mjs", import.meta.url))],
        },
      },
    }),
  );
  const link = await product.start({
    rules: [
      { contains: "fill it in", replies: [call("mcp__desk__ask"), reply("The desk {{tool_result}}")] },
      { contains: "not now", replies: [call("mcp__desk__ask"), reply("The desk {{tool_result}}")] },
    ],
  });
  await startSession(page, link, "fill it in");
  // The first question is whether the server's tool may run at all.
  await attend(page.getByRole("group", { name: "Permission for desk: ask" }));
  await page.keyboard.press("a");
  const form = page.getByRole("form", { name: "Form from desk" });
  await expect(form).toContainText("Which release is it?");
  await page.reload();
  const confirm = form.getByRole("button", { name: "Confirm" });
  await expect(confirm).toBeDisabled();
  // As the server wrote it down, not by the alphabet.
  await expect(form.locator("label")).toContainText(["Name", "Copies", "Channel", "Announce it"]);
  await form.getByRole("textbox", { name: "Name" }).fill("Autumn");
  await form.getByRole("combobox", { name: "Channel" }).selectOption("beta");
  await form.getByRole("spinbutton", { name: /Copies/ }).fill("3");
  await form.getByRole("checkbox", { name: "Announce it" }).check();
  await examine(page, "a form");
  await confirm.click();
  await expect(page.getByText(/The desk heard: .*"accept".*"Autumn"/)).toBeVisible();
  await expect(page.getByText(/"copies":\s*3/).last()).toBeVisible();

  await say(page, "not now");
  await form.getByRole("button", { name: "Decline" }).click();
  await expect(page.getByText(/The desk heard: .*"decline"/)).toBeVisible();
});

test("a hook calls back: the user lets it go on, or blocks it with a reason", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      { contains: "begin", replies: [reply("Ready.")] },
      {
        contains: "first",
        replies: [call("Bash", { command: "echo one" }), reply("It said {{tool_result}}")],
      },
      {
        contains: "second",
        replies: [
          call("Bash", { command: "echo two" }),
          {
            parts: [
              { type: "gate", name: "after" },
              { type: "text", text: "I was told {{tool_result}}" },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "begin");
  await expect(page.getByText("Ready.")).toBeVisible();
  await page.getByRole("main").getByRole("button", { name: "Actions for begin" }).click();
  await page.getByRole("menuitem", { name: "Hook callbacks…" }).click();
  const dialog = page.getByRole("dialog", { name: "Hook callbacks" });
  await dialog.getByRole("checkbox", { name: /Before a tool runs/ }).check();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();

  await say(page, "first");
  const callback = page.getByRole("group", { name: "Callback of the hook PreToolUse" });
  await expect(callback).toContainText("echo one");
  await expect(callback).toContainText(/Continues automatically in \d+s/);
  await expect(page).toHaveTitle(/^\(1\)/);
  const navigation = page.getByRole("navigation");
  await navigation.getByRole("button", { name: "Filter and sort" }).click();
  await page.getByRole("menuitemradio", { name: "Waiting for you" }).click();
  await page.keyboard.press("Escape");
  await expect(navigation.getByRole("link", { name: /^Waiting for you begin/ })).toBeVisible();
  // Told once, and still there after a reload; in the inbox as well.
  await page.reload();
  await expect(callback).toBeVisible();
  await page.getByRole("navigation").getByRole("link", { name: /Inbox/ }).click();
  await attend(page.getByRole("region", { name: "begin" }).getByRole("group", { name: /PreToolUse/ }));
  await page.keyboard.press("y");
  await page.goBack();
  await expect(page.getByText("It said one")).toBeVisible();

  const elsewhere = await page.context().newPage();
  await elsewhere.goto(page.url());
  const there = elsewhere.getByRole("group", { name: "Callback of the hook PreToolUse" });
  const information = elsewhere.getByRole("group", { name: "Session information" });
  await expect(elsewhere.getByText("It said one")).toBeVisible();
  await say(page, "second");
  await expect(there).toBeVisible();
  await expect(information.getByRole("img", { name: "Waiting for you" })).toBeVisible();
  await callback.getByRole("button", { name: "Block…" }).click();
  await callback.getByRole("textbox", { name: "Reason" }).fill("no second time");
  await page.keyboard.press("Enter");
  // Answered in one window, it waits in the other no more, long before the turn ends.
  await product.model?.reached("after");
  await expect(there).toBeHidden();
  await expect(information.getByRole("img", { name: "Running" })).toBeVisible();
  await product.model?.open("after");
  await expect(page.getByText(/I was told .*no second time/)).toBeVisible();
  await expect(tool(page, "Bash").last()).toHaveAttribute("data-state", "error");
});

test("a conversation that is driven elsewhere is watched, forked or taken over", async ({
  page,
  product,
}) => {
  const script = {
    rules: [
      { contains: "remember", replies: [reply("Remembered.")] },
      { contains: "what was it", replies: [reply("You said: {{prompts}}")] },
    ],
  };
  const link = await product.start(script);
  await startSession(page, link, "remember 42");
  await expect(page.getByText("Remembered.")).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  const address = new URL(page.url()).hash;
  // Ends the agent, so that the conversation is free.
  await product.stop();
  const elsewhere = product.keepInTerminal(address.replace("#/s/", ""));
  await page.goto(await product.start(script));
  await page.goto(new URL(`/${address}`, page.url()).href);

  const warning = page.getByRole("alert").filter({ hasText: "Another program" });
  const field = page.getByRole("textbox", { name: "Message" });
  await say(page, "what was it?");
  await expect(warning).toContainText(`${elsewhere.pid}`);
  await examine(page, "driven elsewhere");
  // Nothing that was typed is lost.
  await expect(field).toHaveValue("what was it?");
  await warning.getByRole("button", { name: "Only watch" }).click();
  await expect(warning).toBeHidden();

  await field.press("Enter");
  await warning.getByRole("button", { name: "Fork" }).click();
  await expect(page).not.toHaveURL(new RegExp(address));
  await expect(page.getByRole("log").getByText("Remembered.")).toBeVisible();

  await page.goto(new URL(`/${address}`, page.url()).href);
  await expect(field).toHaveValue("what was it?");
  await field.press("Enter");
  const gone = new Promise((resolve) => elsewhere.once("exit", resolve));
  await warning.getByRole("button", { name: "Take over" }).click();
  await gone;
  await expect(warning).toBeHidden();
  await field.press("Enter");
  await expect(page.getByText(/You said: .*remember 42.*what was it/)).toBeVisible();
});
