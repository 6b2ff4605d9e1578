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

  await list.hover();
  await page.mouse.wheel(0, -600);
  const newest = page.getByRole("button", { name: "Newest" });
  await expect(newest).toBeVisible();
  const before = await list.evaluate((element) => element.scrollTop);
  await product.model?.open("more");
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  expect(Math.abs((await list.evaluate((element) => element.scrollTop)) - before)).toBeLessThan(4);

  await newest.click();
  await expect(page.getByText("Late paragraph 40.")).toBeInViewport();
  await say(page, "once more");
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
