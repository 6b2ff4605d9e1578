/** Long conversations: where the list stands while it grows, and what it loads. */
import type { Locator } from "@playwright/test";
import { expect, say, startSession, test } from "./product";

const paragraphs = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name} paragraph ${index + 1}.`).join("\n\n");
const distanceFromEnd = (list: Locator) =>
  list.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);

test("new words are followed by those who read them, and by nobody else", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "write a lot",
        replies: [
          {
            parts: [
              { type: "text", text: `${paragraphs("Early", 40)}\n\n`, chunk: 60 },
              { type: "gate", name: "more" },
              { type: "text", text: paragraphs("Late", 40), chunk: 60 },
            ],
          },
        ],
      },
      { contains: "once more", replies: [{ parts: [{ type: "text", text: "The very end." }] }] },
    ],
  });
  await startSession(page, link, "write a lot");
  await product.model?.reached("more");
  const list = page.getByRole("log", { name: "Conversation" });
  await expect(page.getByText("Early paragraph 40.")).toBeInViewport();
  await expect.poll(() => distanceFromEnd(list)).toBeLessThan(80);

  const top = () => list.evaluate((element) => element.scrollTop);
  const away = (await top()) - 600;
  const moved = async () => Math.abs((await top()) - away);
  await list.hover();
  await page.mouse.wheel(0, -600);
  const newest = page.getByRole("button", { name: "Newest" });
  await expect(newest).toBeVisible();
  // A wheel's way takes its time.
  await expect.poll(moved).toBeLessThan(4);
  await product.model?.open("more");
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  expect(await moved()).toBeLessThan(4);

  await newest.click();
  await expect(page.getByText("Late paragraph 40.")).toBeInViewport();
  await say(page, "once more");
  await expect(page.getByText("The very end.")).toBeInViewport();
});

test("who never scrolled sees the end: after a reload, a long prompt, a queued one", async ({
  page,
  product,
}) => {
  const ask = {
    parts: [
      {
        type: "tool_use" as const,
        name: "Bash",
        input: { command: "touch made", description: paragraphs("Why", 3) },
      },
    ],
  };
  const link = await product.start({
    rules: [
      {
        contains: "a very long prompt",
        replies: [{ parts: [{ type: "text", text: paragraphs("Early", 30) }] }],
      },
      {
        contains: "with permission",
        replies: [
          ask,
          {
            parts: [
              { type: "text", text: `${paragraphs("Later", 30)}\n\n`, chunk: 60 },
              { type: "gate", name: "queued" },
              { type: "text", text: paragraphs("Last", 30), chunk: 60 },
            ],
          },
        ],
      },
      { contains: "afterwards", replies: [{ parts: [{ type: "text", text: "The very end." }] }] },
    ],
  });
  await startSession(page, link, `a very long prompt\n${"of many words, ".repeat(600)}`);
  await expect(page.getByText("Early paragraph 30.")).toBeInViewport();

  await say(page, "with permission");
  const allow = page.getByRole("button", { name: /^Allow/ });
  await expect(allow).toBeInViewport();
  await page.reload();
  await expect(allow).toBeInViewport();
  await allow.click();
  await product.model?.reached("queued");
  await expect(page.getByText("Later paragraph 30.")).toBeInViewport();

  await say(page, "afterwards this");
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeInViewport();
  await product.model?.open("queued");
  await expect(page.getByText("The very end.")).toBeInViewport();
});

test("a long session opens at its end, and its beginning comes when it is wanted", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      // Letter by letter: many more log entries than a page holds.
      {
        contains: "letter by letter",
        replies: [{ parts: [{ type: "text", text: `${paragraphs("First", 60)}`, chunk: 1 }] }],
      },
      {
        contains: "go on",
        replies: [
          {
            parts: [
              { type: "text", text: paragraphs("Second", 60), chunk: 1 },
              { type: "gate", name: "tail" },
              { type: "text", text: "\n\nThe tail.", chunk: 1 },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "letter by letter");
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  await say(page, "go on");
  await product.model?.reached("tail");

  // In the middle of a message whose beginning lies pages back.
  await page.reload();
  await expect(page.getByText("Second paragraph 60.")).toBeInViewport();
  await product.model?.open("tail");
  await expect(page.getByText("The tail.")).toBeInViewport();
  await expect(page.getByText("Second paragraph 60.")).toHaveCount(1);

  const list = page.getByRole("log", { name: "Conversation" });
  await list.hover();
  const beginning = list.getByText("letter by letter");
  await expect(async () => {
    await page.mouse.wheel(0, -3_000);
    await expect(beginning).toBeInViewport({ timeout: 250 });
  }).toPass();
  await expect(list.getByText("First paragraph 1.", { exact: true })).toBeVisible();
  await expect(beginning).toHaveCount(1);
});
