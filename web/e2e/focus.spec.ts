/** The keyboard is always where the user expects it. Nothing here is clicked that a key could not do, unless it says so. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { attend, expect, type Script, startSession, test } from "./product";

const text = (words: string) => ({ parts: [{ type: "text" as const, text: words }] });
const bash = (command: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command, description: "Try it" } }],
});
const question = {
  parts: [
    {
      type: "tool_use" as const,
      name: "AskUserQuestion",
      input: {
        questions: [
          {
            question: "Which colour?",
            header: "Colour",
            multiSelect: false,
            options: [
              { label: "Red", description: "Warm" },
              { label: "Blue", description: "Cold" },
            ],
          },
        ],
      },
    },
  ],
};

const script: Script = {
  rules: [
    { contains: "first task", replies: [text("First answer.")] },
    { contains: "second task", replies: [text("Second answer.")] },
    {
      contains: "two commands",
      replies: [{ parts: [...bash("touch one").parts, ...bash("touch two").parts] }, text("Both are there.")],
    },
    { contains: "ask me", replies: [question, text("Blue it is.")] },
  ],
};

for (const [size, width] of [
  ["a wide page", 1440],
  ["a narrow page", 390],
] as const) {
  test.describe(size, () => {
    test.use({ viewport: { width, height: 900 } });

    test("the message field has the focus after load, start, switch, new session and example", async ({
      page,
      product,
    }) => {
      const link = await product.start(script);
      const task = page.getByRole("textbox", { name: "Task" });
      const message = page.getByRole("textbox", { name: "Message" });

      // The page opens, and one can type.
      await page.goto(link);
      await expect(task).toBeFocused();
      await page.keyboard.type("first task");
      await page.keyboard.press("Enter");

      // The session has begun, and one can go on typing.
      await expect(page.getByText("First answer.")).toBeVisible();
      await expect(message).toBeFocused();
      await page.keyboard.type("half a thought");
      await page.reload();
      await expect(message).toBeFocused();
      // Behind what was typed before.
      await page.keyboard.type(" and more");
      await expect(message).toHaveValue("half a thought and more");

      // A new session.
      await page.keyboard.press("Alt+n");
      await expect(task).toBeFocused();
      await page.keyboard.type("second task");
      await page.keyboard.press("Enter");
      await expect(page.getByText("Second answer.")).toBeVisible();
      await expect(message).toBeFocused();

      // Back to the first one, through the palette, where it is the first of all.
      await page.keyboard.press("Control+k");
      await expect(page.getByRole("combobox", { name: "Command palette" })).toBeFocused();
      await expect(page.getByRole("option").first()).toContainText("first task");
      await page.keyboard.press("Enter");
      await expect(message).toHaveValue("half a thought and more");
      await expect(message).toBeFocused();

      // And with the browser's own way back.
      await page.goBack();
      await expect(message).toHaveValue("");
      await expect(message).toBeFocused();

      // An example is there to be changed.
      await page.keyboard.press("Alt+n");
      await page.getByRole("button", { name: "Explain this project" }).click();
      await expect(task).toBeFocused();
      await page.keyboard.type(" Briefly.");
      await expect(task).toHaveValue(/.+ Briefly\.$/);
      await page.goto(page.url().replace(/#.*/, "#/examples"));
      await page.getByRole("button", { name: /Find a bug/ }).click();
      await expect(task).toBeFocused();
    });

    test("an answer leads to the next request, then to the message field", async ({ page, product }) => {
      const link = await product.start(script);
      await startSession(page, link, "two commands");
      const requests = page.getByRole("group", { name: "Permission for Bash" });
      const message = page.getByRole("textbox", { name: "Message" });
      await expect(requests.first()).toBeVisible();
      await expect(message).toBeFocused();

      // From the empty field, without leaving it.
      await expect(requests.first()).toHaveAttribute("aria-busy", "false");
      await page.keyboard.press("Control+Enter");
      await expect.poll(() => existsSync(join(product.project, "one"))).toBe(true);
      await expect(requests).toHaveCount(1);
      // On the request itself a letter is enough, and an edit that is given up leads back to it.
      await attend(requests.first());
      await page.keyboard.press("e");
      await expect(page.getByRole("textbox", { name: "What the tool is given" })).toBeFocused();
      await page.keyboard.press("Escape");
      await expect(requests.first()).toBeFocused();
      await page.keyboard.press("n");
      await expect(page.getByRole("textbox", { name: "Reason" })).toBeFocused();
      await page.keyboard.press("Escape");
      await expect(requests.first()).toBeFocused();
      await page.keyboard.press("e");
      await page.keyboard.press("Control+a");
      await page.keyboard.type("touch three");
      await page.keyboard.press("Control+Enter");
      await expect(page.getByText("Both are there.")).toBeVisible();
      await expect(message).toBeFocused();
      expect(existsSync(join(product.project, "two"))).toBe(false);
      expect(existsSync(join(product.project, "three"))).toBe(true);
    });

    test("a question is answered with digits, and the message field is back afterwards", async ({
      page,
      product,
    }) => {
      const link = await product.start(script);
      await page.goto(link);
      await expect(page.getByRole("textbox", { name: "Task" })).toBeFocused();
      await page.keyboard.type("ask me");
      await page.keyboard.press("Enter");
      const asked = page.getByRole("form", { name: "Questions of the agent" });
      await expect(asked).toHaveAttribute("aria-busy", "false");
      await expect(asked).toBeFocused();
      await page.keyboard.press("2");
      await page.keyboard.press("Control+Enter");
      await expect(page.getByText("Blue it is.")).toBeVisible();
      await expect(page.getByRole("textbox", { name: "Message" })).toBeFocused();
    });
  });
}

test("dialogs focus their field: what is typed at once is not lost", async ({ page, product }) => {
  const link = await product.start(script);
  await startSession(page, link, "first task");
  await expect(page.getByText("First answer.")).toBeVisible();
  const message = page.getByRole("textbox", { name: "Message" });

  // Rename, from the palette and from the menu.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("rename");
  await page.keyboard.press("Enter");
  const title = page.getByRole("textbox", { name: "Title" });
  await expect(title).toBeFocused();
  await page.keyboard.type("A better name");
  await page.keyboard.press("Enter");
  await expect(title).toBeHidden();
  await expect(page.getByRole("heading", { name: "A better name" })).toBeAttached();
  await expect(message).toBeFocused();
  await page
    .getByRole("group", { name: "Session information" })
    .getByRole("button", { name: /^Actions/ })
    .press("Enter");
  await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
  await expect(title).toBeFocused();
  await page.keyboard.type("The best name");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "The best name" })).toBeAttached();

  // The folder is picked from a list that has the focus, also one folder further.
  await page.keyboard.press("Alt+n");
  await page.getByRole("button", { name: "Browse" }).press("Enter");
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("listitem").first().getByRole("button")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(dialog.getByRole("button", { name: "project" })).toBeVisible();
  await expect(dialog.getByRole("listitem").first().getByRole("button")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
});

test("the palette does what can be done with a session", async ({ page, product }) => {
  const link = await product.start(script);
  await startSession(page, link, "two commands");
  const requests = page.getByRole("group", { name: "Permission for Bash" });
  await expect(requests.first()).toHaveAttribute("aria-busy", "false");
  const message = page.getByRole("textbox", { name: "Message" });
  const type = async (words: string) => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type(words);
    await page.keyboard.press("Enter");
    await expect(page.getByRole("dialog")).toBeHidden();
  };
  await type("allow");
  await expect.poll(() => existsSync(join(product.project, "one"))).toBe(true);
  await expect(requests).toHaveCount(1);
  await expect(requests.first()).toHaveAttribute("aria-busy", "false");
  await type("deny");
  await expect(page.getByRole("textbox", { name: "Reason" })).toBeFocused();
  await page.keyboard.type("not needed");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Both are there.")).toBeVisible();
  await expect(message).toBeFocused();

  await type("mode plan");
  await expect(page.getByRole("combobox", { name: "Permission mode" })).toContainText("Plan");
  await expect(message).toBeFocused();
  await type("model: sonnet");
  await expect(page.getByRole("combobox", { name: "Model" })).toContainText("Sonnet");
  await type("fork");
  await expect(page.getByRole("heading", { name: "two commands ⑂" })).toBeAttached();
  await expect(message).toBeFocused();
});
