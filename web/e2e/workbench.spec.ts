/** The frame around the conversations, and what a session can be told beside its prompts. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examine } from "./access";
import { expect, say, startSession, test, tool } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const command = (text: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command: text, description: "Try it" } }],
});
const gated = (gate: string) => ({
  parts: [
    { type: "text" as const, text: "Working. " },
    { type: "gate" as const, name: gate },
    { type: "text" as const, text: "Finished." },
  ],
});

test("every entry of the navigation leads to a page with something on it, open to everyone", async ({
  page,
  product,
}) => {
  test.slow();
  const claude = join(product.project, ".claude");
  mkdirSync(join(claude, "skills/release"), { recursive: true });
  writeFileSync(
    join(claude, "skills/release/SKILL.md"),
    "---\nname: release\ndescription: Cut a release\n---\n",
  );
  writeFileSync(
    join(claude, "settings.json"),
    JSON.stringify({
      hooks: { PostToolUse: [{ matcher: "Edit", hooks: [{ type: "command", command: "lint.sh" }] }] },
    }),
  );
  writeFileSync(
    join(product.project, ".mcp.json"),
    JSON.stringify({
      mcpServers: { notes: { command: "notes-mcp", env: { NOTES_TOKEN: "not-to-be-seen" } } },
    }),
  );
  await page.goto(await product.start("demo"));
  const navigation = page.getByRole("navigation");
  const main = page.getByRole("main");
  const open = async (name: string) => {
    await navigation.getByRole("link", { name }).click();
    await expect(main.getByRole("heading", { level: 1, name })).toBeVisible();
    await expect(main.getByRole("status")).toBeHidden();
    await examine(page, name);
  };
  await open("Inbox");
  await expect(main.getByText("Nothing is waiting for you.")).toBeVisible();
  await navigation.getByRole("button", { name: "Claude Code" }).click();
  await open("Claude status");
  await expect(main.getByText("Built-in demo agent")).toBeVisible();
  await expect(main.getByRole("meter", { name: "Memory" })).not.toHaveAttribute("aria-valuenow", "0");
  await open("Documentation");
  await expect(main.getByText("Runs a command in a shell")).toBeVisible();
  await open("Agent monitor");
  await expect(main.getByText("No agent is at work")).toBeVisible();
  await open("Skills");
  await expect(main.getByText("Cut a release")).toBeVisible();
  await open("MCP servers");
  await expect(main.getByText("notes-mcp")).toBeVisible();
  await expect(main.getByText("NOTES_TOKEN")).toBeVisible();
  await expect(main.getByText("not-to-be-seen")).toBeHidden();
  await open("Plugins");
  await expect(main.getByText("No plugins are installed")).toBeVisible();
  await open("Hooks");
  await expect(main.getByText("lint.sh")).toBeVisible();
  await open("Example tasks");
  await main.getByRole("button", { name: /Review my changes/ }).click();
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue(/uncommitted changes/);

  // Folded to pictures, everything is still there; the choice is remembered.
  await page.keyboard.press("Control+b");
  await expect(navigation.getByRole("button", { name: "Show the navigation" })).toBeVisible();
  await page.reload();
  await navigation.getByRole("link", { name: "Skills" }).click();
  await expect(main.getByText("Cut a release")).toBeVisible();
  await navigation.getByRole("button", { name: "Show the navigation" }).click();

  await page.keyboard.press("?");
  await expect(main.getByRole("heading", { name: "Keyboard shortcuts" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command palette" }).fill("hook");
  await examine(page, "palette");
  await page.keyboard.press("Enter");
  await expect(main.getByText("lint.sh")).toBeVisible();
});

test("sessions are renamed, searched, archived, forked and opened as tabs", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      { contains: "alpha", replies: [reply("Alpha done.")] },
      { contains: "beta", replies: [reply("Beta done.")] },
      { contains: "what was", replies: [reply("You said: {{prompts}}")] },
    ],
  });
  await startSession(page, link, "alpha task");
  await expect(page.getByText("Alpha done.")).toBeVisible();
  await page.keyboard.press("Alt+n");
  await page.getByRole("textbox", { name: "Task" }).fill("beta task");
  await page.getByRole("textbox", { name: "Task" }).press("Enter");
  await expect(page.getByText("Beta done.")).toBeVisible();

  const navigation = page.getByRole("navigation");
  const tabs = page.getByRole("list", { name: "Open sessions" });
  await expect(tabs.getByRole("link")).toHaveCount(3);
  await page.keyboard.press("Alt+1");
  await expect(page.getByText("Alpha done.")).toBeVisible();

  await page.getByRole("main").getByRole("button", { name: "Actions for alpha task" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Title" }).fill("The first one");
  await page.keyboard.press("Enter");
  await expect(tabs.getByRole("link", { name: /The first one/ })).toBeVisible();

  await navigation.getByRole("searchbox", { name: "Search sessions" }).fill("first");
  await expect(navigation.getByRole("link", { name: /beta task/ })).toBeHidden();
  await expect(navigation.getByRole("link", { name: /The first one/ })).toBeVisible();
  await navigation.getByRole("button", { name: "Clear the search" }).click();

  await page.getByRole("main").getByRole("button", { name: "Actions for The first one" }).click();
  const forked = page.url();
  await page.getByRole("menuitem", { name: "Fork" }).click();
  await expect(page).not.toHaveURL(forked);
  await say(page, "what was it?");
  await expect(page.getByText(/You said: .*alpha task.*what was it/)).toBeVisible();
  await expect(page.getByRole("log").getByText("Alpha done.")).toBeVisible();
  // Its transcript has what was said before, too: the page sees that it has that already.
  const transcript = page.waitForResponse((response) => response.url().includes("limit=500"));
  await page.reload();
  await (await transcript).finished();
  await expect(page.getByText(/You said: .*alpha task.*what was it/)).toBeVisible();
  await expect(page.getByRole("log").getByText("Alpha done.", { exact: true })).toHaveCount(1);

  const actions = navigation.getByRole("button", { name: "Actions for beta task" });
  const beta = navigation.getByRole("link", { name: /beta task/ });
  await actions.click();
  await page.getByRole("menuitem", { name: "Archive" }).click();
  // A slip can be undone.
  await expect(beta).toBeHidden();
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(beta).toBeVisible();
  await actions.click();
  await page.getByRole("menuitem", { name: "Archive" }).click();
  await expect(beta).toBeHidden();
  await navigation.getByRole("button", { name: "Filter and sort" }).click();
  await page.getByRole("menuitemradio", { name: "Archived" }).click();
  await expect(beta).toBeVisible();

  await tabs.getByRole("button", { name: "Close tab “beta task”" }).click();
  await expect(tabs.getByRole("link", { name: /beta task/ })).toBeHidden();
});

test("the inbox answers for all sessions, and an input can be changed before it is allowed", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "first", replies: [command("touch one"), reply("It said: {{tool_result}}")] },
      { contains: "second", replies: [command("touch two"), reply("Second went on.")] },
    ],
  });
  await startSession(page, link, "first thing");
  await expect(page.getByRole("group", { name: "Permission for Bash" })).toBeVisible();
  await page.keyboard.press("Alt+n");
  await page.getByRole("textbox", { name: "Task" }).fill("second thing");
  await page.getByRole("textbox", { name: "Task" }).press("Enter");
  await expect(page.getByRole("group", { name: "Permission for Bash" })).toBeVisible();
  await expect(page).toHaveTitle(/^\(2\)/);

  await page.getByRole("navigation").getByRole("link", { name: /Inbox/ }).click();
  await page.reload();
  const first = page.getByRole("region", { name: "first thing" });
  const second = page.getByRole("region", { name: "second thing" });
  await second.getByRole("button", { name: /^Allow/ }).click();
  await expect(second).toBeHidden();
  await first.getByRole("button", { name: /^Edit/ }).click();
  await first.getByRole("textbox", { name: "What the tool is given" }).fill("echo changed by hand");
  await first.getByRole("button", { name: "Allow as edited" }).click();
  await expect(page.getByText("Nothing is waiting for you.")).toBeVisible();
  await page
    .getByRole("navigation")
    .getByRole("link", { name: /first thing/ })
    .click();
  await expect(page.getByText("It said: changed by hand")).toBeVisible();
});

test("what waits can be changed, reordered, removed, kept by a stop and sent", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      { contains: "begin", replies: [gated("never")] },
      { contains: "changed prompt", replies: [reply("The changed one.")] },
      { contains: "later", replies: [reply("The later one.")] },
    ],
  });
  await startSession(page, link, "begin");
  await product.model?.reached("never");
  await say(page, "some prompt");
  await say(page, "unwanted");
  await say(page, "later");
  const list = page.getByRole("log", { name: "Conversation" });
  // All of them wait with the server: a change of fewer would be refused.
  await expect(list.getByRole("button", { name: "Remove this prompt" })).toHaveCount(3);
  await list.getByRole("button", { name: "Remove this prompt" }).nth(1).click();
  await expect(list.getByText("unwanted")).toBeHidden();
  await list.getByRole("button", { name: "Edit this prompt" }).first().click();
  await list.getByRole("textbox", { name: "Edit this prompt" }).fill("changed prompt");
  await page.keyboard.press("Enter");
  await expect(list.getByText("changed prompt")).toBeVisible();
  await page.getByRole("textbox", { name: "Message" }).press("Escape");
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Stopped");
  await list.getByRole("button", { name: "Send now" }).click();
  await expect(page.getByText("The changed one.")).toBeVisible();
  await expect(page.getByText("The later one.")).toBeVisible();
});

test("the field completes commands and files, recalls prompts, and takes images and settings", async ({
  page,
  product,
}) => {
  writeFileSync(join(product.project, "curious-name.txt"), "hello\n");
  mkdirSync(join(product.project, ".claude/commands"), { recursive: true });
  writeFileSync(
    join(product.project, ".claude/commands/salute.md"),
    "---\ndescription: Say hello in style\n---\nSay hello to $ARGUMENTS",
  );
  const link = await product.start({
    rules: [
      { contains: "one", replies: [reply("Answer number one.")] },
      { contains: "look at", replies: [reply("I looked.")] },
      { contains: "the picture", replies: [reply("A fine picture.")] },
    ],
  });
  await startSession(page, link, "one");
  await expect(page.getByText("Answer number one.")).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  const field = page
    .getByRole("textbox", { name: "Message" })
    .or(page.getByRole("combobox", { name: "Message" }));

  await page.getByText("Answer number one.").selectText();
  await page.keyboard.press("Shift");
  await page.getByRole("button", { name: "Quote" }).click();
  await expect(field).toHaveValue("> Answer number one.\n\n");
  await field.fill("");

  await field.press("ArrowUp");
  await expect(field).toHaveValue("one");
  await field.press("ArrowDown");
  await expect(field).toHaveValue("");

  await field.pressSequentially("/sal");
  await expect(page.getByRole("option", { name: /salute.*Say hello in style/ })).toBeVisible();
  await field.press("Tab");
  await expect(field).toHaveValue("/salute ");
  await field.fill("");
  await field.pressSequentially("look at @curious");
  await expect(page.getByRole("option", { name: "curious-name.txt" })).toBeVisible();
  await field.press("Enter");
  await expect(field).toHaveValue("look at @curious-name.txt ");
  await field.press("Enter");
  await expect(page.getByText("I looked.")).toBeVisible();

  const pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await page.locator('input[type="file"]').setInputFiles({
    name: "pixel.png",
    mimeType: "image/png",
    buffer: Buffer.from(pixel, "base64"),
  });
  await expect(
    page.getByRole("list", { name: "Images to send" }).getByRole("img", { name: "pixel.png" }),
  ).toBeVisible();
  await say(page, "the picture");
  await expect(page.getByText("A fine picture.")).toBeVisible();
  await expect(page.getByRole("log").getByRole("img", { name: "pixel.png" })).toBeVisible();
  expect(JSON.stringify(await product.model?.heard("the picture"))).toContain(pixel);

  await page.getByRole("combobox", { name: "Permission mode" }).click();
  await page.getByRole("option", { name: /^Accept edits/ }).click();
  await expect(page.getByRole("combobox", { name: "Permission mode" })).toContainText("Accept edits");
  await page.reload();
  await expect(page.getByRole("combobox", { name: "Permission mode" })).toContainText("Accept edits");
});

test("the panel shows what was changed, and a line of it goes along with a prompt", async ({
  page,
  product,
}) => {
  const file = join(product.project, "greeting.txt");
  writeFileSync(file, "hello\n");
  const link = await product.start({
    rules: [
      {
        contains: "change it",
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
          reply("Changed."),
        ],
      },
      { contains: "about this line", replies: [reply("I see the line.")] },
    ],
  });
  await startSession(page, link, "change it");
  await page.getByRole("button", { name: /^Allow/ }).click();
  await expect(page.getByText("Changed.")).toBeVisible();
  expect(readFileSync(file, "utf8")).toBe("good day\n");

  const panel = page.getByRole("complementary", { name: "Session details" });
  await panel.getByRole("button", { name: /greeting.txt/ }).click();
  await expect(page.getByRole("dialog").getByRole("row", { name: "good day" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(panel.getByText(/of .* tokens/)).toBeVisible();

  // A line of the change as context for the next prompt.
  await tool(page, "Edit").getByRole("button", { name: "Mention line 1" }).first().click();
  await say(page, "about this line");
  await expect(page.getByText("I see the line.")).toBeVisible();
  const asked = await product.model?.heard("about this line");
  expect(JSON.stringify(asked?.body.messages.at(-1))).toContain("greeting.txt");
});
