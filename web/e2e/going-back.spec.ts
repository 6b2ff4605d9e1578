/** What can be done with a message: copied, written anew, tried again, forked from, gone back to. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, say, type Script, startSession, test } from "./product";

const text = (words: string) => ({ parts: [{ type: "text" as const, text: words }] });

/** Opens the menu of the row that has these words, without a mouse. */
async function act(page: Page, words: string, action: string): Promise<void> {
  const written = page.getByText(words, { exact: true });
  const row = page.getByRole("log").locator("[tabindex='-1']").filter({ has: written }).last();
  await row.getByRole("button", { name: "Actions for this message" }).press("Enter");
  await page.getByRole("menuitem", { name: action }).press("Enter");
}

const script: Script = {
  rules: [
    { contains: "first", replies: [text("First answer.")] },
    { contains: "second", replies: [text("Second answer, after {{prompts}}.")] },
    { contains: "other way", replies: [text("Known: {{prompts}}.")] },
    { contains: "changed", replies: [text("Heard: {{prompts}}.")] },
  ],
};

for (const width of [1440, 390]) {
  test.describe(`at ${width}`, () => {
    test.use({ viewport: { width, height: 900 } });

    test("a prompt is written anew, an answer tried again, and a session forked from a message", async ({
      page,
      product,
    }) => {
      const link = await product.start(script);
      await startSession(page, link, "first");
      await expect(page.getByText("First answer.")).toBeVisible();
      await say(page, "second");
      await expect(page.getByText("Second answer, after first | second.")).toBeVisible();
      const message = page.getByRole("textbox", { name: "Message" });
      const log = page.getByRole("log");

      // Tried again: the first try is put away.
      await act(page, "Second answer, after first | second.", "Retry");
      await expect(page.getByText("1 message was put away when you went back here.")).toBeVisible();
      await expect(page.getByText("Second answer, after first | second.")).toHaveCount(1);
      await expect(page.getByRole("region", { name: "Result" })).toHaveCount(2);
      await expect(message).toBeFocused();

      // Written anew; Escape leaves it as it was.
      await act(page, "second", "Edit and resend");
      const edited = page.getByRole("textbox", { name: "Edit the message" });
      await expect(edited).toBeFocused();
      await page.keyboard.type(" thoughts");
      await page.keyboard.press("Escape");
      await expect(edited).toHaveCount(0);
      await expect(message).toBeFocused();
      await act(page, "second", "Edit and resend");
      await page.keyboard.press("Control+a");
      await page.keyboard.type("changed");
      await page.keyboard.press("Enter");
      await expect(page.getByText("Heard: first | changed.")).toBeVisible();
      await page.reload();
      await expect(page.getByText("Heard: first | changed.")).toBeVisible();
      await expect(log.getByText("Second answer")).toHaveCount(0);

      // Forked from the first answer: the new session has nothing of what came later.
      await act(page, "First answer.", "Fork from here");
      await expect(page.getByRole("heading", { name: "first ⑂" })).toBeAttached();
      await expect(page.getByText("First answer.")).toBeVisible();
      await expect(log.getByText("changed", { exact: true })).toHaveCount(0);
      await expect(message).toBeFocused();
      await say(page, "other way");
      await expect(page.getByText("Known: first | other way.")).toBeVisible();
    });

    test("conversation and files go back in one step, which is shown first and can be undone", async ({
      page,
      product,
    }) => {
      const file = join(product.project, "notes.txt");
      writeFileSync(file, "before\n");
      const link = await product.start({
        rules: [
          { contains: "hello", replies: [text("Hello.")] },
          {
            contains: "write",
            replies: [
              { parts: [{ type: "tool_use", name: "Read", input: { file_path: file } }] },
              {
                parts: [{ type: "tool_use", name: "Write", input: { file_path: file, content: "after\n" } }],
              },
              text("Written."),
            ],
          },
          { contains: "and now", replies: [text("Known: {{prompts}}.")] },
        ],
      });
      await startSession(page, link, "hello");
      await expect(page.getByText("Hello.", { exact: true })).toBeVisible();
      const message = page.getByRole("textbox", { name: "Message" });
      await page.getByRole("combobox", { name: "Permission mode" }).click();
      await page.getByRole("option", { name: /Accept edits/ }).click();
      await say(page, "write it");
      await expect(page.getByText("Written.")).toBeVisible();
      expect(readFileSync(file, "utf8")).toBe("after\n");

      // What would change is said before anything does.
      await act(page, "write it", "Rewind to here…");
      const dialog = page.getByRole("dialog");
      await expect(dialog.getByText("1 message and what followed are put away.")).toBeVisible();
      await expect(dialog.getByText("notes.txt", { exact: true })).toHaveAttribute("title", file);
      await expect(dialog.getByRole("checkbox", { name: "Restore 1 file" })).toBeChecked();
      await page.keyboard.press("Escape");
      await expect(dialog).toBeHidden();
      expect(readFileSync(file, "utf8")).toBe("after\n");

      await act(page, "write it", "Rewind to here…");
      await dialog.getByRole("button", { name: "Rewind", exact: true }).press("Enter");
      await expect(page.getByText("1 message was put away when you went back here.")).toBeVisible();
      await expect(page.getByText("Written.")).toHaveCount(0);
      expect(readFileSync(file, "utf8")).toBe("before\n");
      // The prompt is there to be written anew.
      await expect(message).toHaveValue("write it");
      await expect(message).toBeFocused();

      // Undone, after a reload as well.
      await page.reload();
      await page.getByRole("button", { name: "Undo the rewind" }).press("Enter");
      await expect(page.getByText("Written.")).toBeVisible();
      await expect.poll(() => readFileSync(file, "utf8")).toBe("after\n");

      // Back once more, and on from there: the model knows nothing of what was put away.
      await act(page, "write it", "Rewind to here…");
      await dialog.getByRole("button", { name: "Rewind", exact: true }).press("Enter");
      await expect(message).toBeFocused();
      await message.fill("and now");
      await message.press("Enter");
      await expect(page.getByText("Known: hello | and now.")).toBeVisible();
      await expect(page.getByRole("button", { name: "Undo the rewind" })).toHaveCount(0);
      expect(existsSync(file)).toBe(true);
    });
  });
}

test("a message says when it was sent, and is copied", async ({ page, product, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const link = await product.start(script);
  await startSession(page, link, "first");
  const answer = page.getByText("First answer.");
  await expect(answer).toBeVisible();
  await answer.hover();
  await expect(page.getByRole("log").locator("time").last()).toBeVisible();
  await act(page, "First answer.", "Copy");
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe("First answer.");
});
