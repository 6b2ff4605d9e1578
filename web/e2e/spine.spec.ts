/** The thinnest complete way through the product, with the real Claude Code. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { attend, expect, say, startSession, test, tool } from "./product";

const touch = {
  type: "tool_use" as const,
  name: "Bash",
  input: { command: "touch made-by-agent && echo made", description: "Make a file" },
};

test("the link signs in once, the sign-in is listed, and ends when it is told to", async ({
  page,
  product,
  browser,
}) => {
  const link = await product.start({ rules: [] });
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();
  // The code is gone from the address, and an empty list of sessions leads to a new task.
  await expect(page).toHaveURL(new URL("/#/new", link).href);
  await page.reload();
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();

  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(new URL("/", link).href);
  await expect(stranger.getByRole("heading", { name: "You are not signed in" })).toBeVisible();
  await expect(stranger.getByText("tiller link")).toBeVisible();

  // The same link again says what is wrong with it, and does not stay in the address.
  await stranger.goto(link);
  await expect(stranger.getByRole("heading", { name: "This link has been used" })).toBeVisible();
  expect(stranger.url()).not.toContain("code=");

  // A page on another port of the host has the cookie, and can set others in its place. Neither helps it.
  const context = page.context();
  const name = (await context.cookies())[0]?.name ?? "";
  const answer = await context.request.get(new URL("/api/system", link).href);
  expect(answer.status()).toBe(401);
  await context.addCookies([{ name, value: "shadow", domain: "127.0.0.1", path: "/api" }]);
  await page.reload();
  await expect(page.getByRole("heading", { name: "What do you want to work on?" })).toBeVisible();

  await page.goto(new URL("/#/access", link).href);
  const signIns = page.locator("section", { hasText: "Signed-in browsers" });
  await expect(signIns.getByRole("listitem")).toHaveCount(1);
  await expect(signIns.getByText("This browser")).toBeVisible();
  await signIns.getByRole("button", { name: /^Sign out Chrome/ }).click();
  await expect(page.getByRole("heading", { name: "You are not signed in" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "You are not signed in" })).toBeVisible();
});

test("an answer appears word by word, and the result says what it took", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "tell me a story",
        replies: [
          {
            parts: [
              { type: "thinking", thinking: "A story, then.", chunk: 4 },
              { type: "text", text: "Once upon a time ", chunk: 5 },
              { type: "gate", name: "middle" },
              { type: "text", text: "there was a **tiller**.", chunk: 5 },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "Please tell me a story");

  await product.model?.reached("middle");
  const conversation = page.getByRole("log", { name: "Conversation" });
  await expect(conversation.getByText("Once upon a time")).toBeVisible();
  await expect(conversation.getByText("there was a")).toBeHidden();
  await expect(page.getByRole("button", { name: "Stop" })).toBeVisible();

  await product.model?.open("middle");
  await expect(conversation.getByText("Once upon a time there was a tiller.")).toBeVisible();
  await expect(conversation.locator("strong", { hasText: "tiller" })).toBeVisible();

  const result = page.getByRole("region", { name: "Result" });
  await expect(result).toContainText("Done");
  await expect(result).toContainText(/\d+(\.\d)?s/);
  await expect(result).toContainText(/\$\d+\.\d+/);
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();

  await conversation.getByRole("button", { name: "Thought" }).click();
  await expect(conversation.getByText("A story, then.")).toBeVisible();
});

test("a command waits for permission, runs when allowed, and the model hears why when denied", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      {
        contains: "make a file",
        replies: [{ parts: [touch] }, { parts: [{ type: "text", text: "It said: {{tool_result}}" }] }],
      },
      {
        contains: "remove it",
        replies: [
          {
            parts: [
              {
                type: "tool_use",
                name: "Bash",
                input: { command: "rm made-by-agent", description: "Remove the file" },
              },
            ],
          },
          { parts: [{ type: "text", text: "I was told: {{tool_result}}" }] },
        ],
      },
    ],
  });
  const made = join(product.project, "made-by-agent");
  await startSession(page, link, "make a file");

  const permission = page.getByRole("group", { name: "Permission for Bash" });
  await expect(permission).toContainText("touch made-by-agent && echo made");
  await expect(tool(page, "Bash")).toHaveAttribute("data-state", "waiting");
  await expect(page.getByRole("navigation").getByText("Needs you")).toBeVisible();
  expect(existsSync(made)).toBe(false);

  // A decision survives a reload.
  await page.reload();
  await permission.getByRole("button", { name: /^Allow/ }).click();
  await expect(tool(page, "Bash")).toHaveAttribute("data-state", "success");
  await expect(page.getByText("It said: made")).toBeVisible();
  expect(existsSync(made)).toBe(true);

  await say(page, "now remove it");
  await expect(permission).toContainText("rm made-by-agent");
  await attend(permission);
  await page.keyboard.press("n");
  await page.getByRole("textbox", { name: "Reason" }).fill("I still need that file");
  await page.keyboard.press("Enter");
  await expect(page.getByText(/I was told: .*I still need that file/)).toBeVisible();
  await expect(tool(page, "Bash").last()).toHaveAttribute("data-state", "denied");
  expect(existsSync(made)).toBe(true);
});

test("stop ends the turn, and is no error", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "count forever",
        replies: [
          {
            parts: [
              { type: "text", text: "One, two, " },
              { type: "gate", name: "never" },
              { type: "text", text: "three" },
            ],
          },
        ],
      },
      { contains: "and now", replies: [{ parts: [{ type: "text", text: "Here I am again." }] }] },
    ],
  });
  await startSession(page, link, "count forever");
  await product.model?.reached("never");
  await expect(page.getByText("One, two,")).toBeVisible();

  await page.getByRole("button", { name: "Stop" }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Stopped");
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  await expect(page.getByRole("alert")).toBeHidden();
  await expect(page.getByText("One, two,")).toBeVisible();

  await say(page, "and now?");
  await expect(page.getByText("Here I am again.")).toBeVisible();
});

test("everything is there after a reload and after a restart, and the conversation goes on", async ({
  page,
  product,
}) => {
  const script = {
    rules: [
      {
        contains: "my name is Ada",
        replies: [{ parts: [touch] }, { parts: [{ type: "text" as const, text: "Hello Ada, it is done." }] }],
      },
      {
        contains: "what did I say",
        replies: [{ parts: [{ type: "text" as const, text: "You said: {{prompts}}" }] }],
      },
    ],
  };
  await startSession(page, await product.start(script), "my name is Ada");
  await page.getByRole("button", { name: /^Allow/ }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");

  async function everythingIsThere() {
    await expect(page.getByRole("log").getByText("my name is Ada")).toBeVisible();
    await expect(tool(page, "Bash")).toHaveAttribute("data-state", "success");
    await expect(tool(page, "Bash")).toContainText("made");
    await expect(page.getByText("Hello Ada, it is done.")).toBeVisible();
    await expect(page.getByRole("region", { name: "Result" })).toContainText("$");
  }
  await everythingIsThere();
  await page.reload();
  await everythingIsThere();

  await product.stop();
  await expect(page.getByText("Offline, reconnecting…")).toBeVisible();
  // A sign-in belongs to its address, and the port is another one now.
  await page.goto(await product.start(script));
  await everythingIsThere();

  await say(page, "what did I say?");
  await expect(page.getByText(/You said: .*my name is Ada.*what did I say/)).toBeVisible();
  const asked = JSON.stringify(await product.model?.heard("what did I say?"));
  expect(asked).toContain("my name is Ada");
  expect(asked).toContain("Hello Ada, it is done.");
});
