/** How a conversation looks: what was said, what was done, and what stays where it is. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { expect, type Part, type Product, say, startSession, test, tool } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const read = (file: string): Part => ({ type: "tool_use", name: "Read", input: { file_path: file } });

const box = async (part: Locator) => {
  const found = await part.boundingBox();
  if (!found) throw new Error("it is not there");
  return found;
};

/** How far the words of a part are from its edges. */
const start = (part: Locator) =>
  part.evaluate((element) => {
    const range = document.createRange();
    const words = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const text = words.nextNode();
    if (text) range.selectNodeContents(text);
    const { left, right } = range.getBoundingClientRect();
    const around = element.getBoundingClientRect();
    return { left: left - around.left, right: around.right - right };
  });

const shapes = `A table:

| file | what it does | status | unbreakable |
| --- | --- | --- | --- |
| crates/server/src/events/commands/list.rs | lists the sessions of the viewer, page by page, newest first | done | averyveryverylongwordthatnobodycanbreak |

- [x] the first
  - [ ] one inside
- a plain one

שלום עולם, this paragraph begins on the right.

- אחת
- שתיים
`;

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 } });
  test("a wide table scrolls and keeps its words whole", async ({ page, product }) => {
    const link = await product.start({ rules: [{ contains: "shapes", replies: [reply(shapes)] }] });
    await startSession(page, link, "shapes");
    const table = page.getByRole("table");
    await expect(table).toBeVisible();
    const widths = await table.evaluate((element) => {
      const cells = [...element.querySelectorAll("td")];
      const word = document.createRange();
      word.selectNodeContents(cells.at(-1) ?? element);
      const around = element.parentElement;
      return {
        scrolls: (around?.scrollWidth ?? 0) > (around?.clientWidth ?? 0),
        linesOfAWord: new Set([...word.getClientRects()].map(({ top }) => Math.round(top))).size,
        sentence: cells.at(1)?.clientWidth ?? 0,
      };
    });
    expect(widths).toMatchObject({ scrolls: true, linesOfAWord: 1 });
    expect(widths.sentence).toBeGreaterThan(150);
  });
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  test("the details lie over the conversation, and leave with Escape or a tap beside them", async ({
    page,
    product,
  }) => {
    await startSession(page, await product.start("demo"), "show me around");
    const details = page.getByRole("dialog", { name: "Session details" });
    const show = page.getByRole("button", { name: "Show the details" });
    await show.click();
    await expect(details).toBeVisible();
    await page.keyboard.press("Escape");
    await expect(details).toBeHidden();
    await show.click();
    await expect(details).toBeVisible();
    await page.touchscreen.tap(20, 500);
    await expect(details).toBeHidden();
  });
});

const colours = (part: Locator) =>
  part.evaluate((element) => {
    const { color, borderTopColor, backgroundColor } = getComputedStyle(element);
    return { color, border: borderTopColor, background: backgroundColor };
  });

test("an empty prompt has a red border while the field has the focus", async ({ page, product }) => {
  await page.goto(await product.start("demo"));
  const field = page.getByRole("textbox", { name: "Task" });
  await field.press("Enter");
  const complaint = page.getByText("Please describe the task.");
  await expect(complaint).toBeVisible();
  await expect(field).toBeFocused();
  const frame = page.locator("form > div").filter({ has: field });
  await expect.poll(async () => (await colours(frame)).border).toBe((await colours(complaint)).color);
  await field.pressSequentially("x");
  await expect(complaint).toBeHidden();
});

test("a mode that asks for nothing looks dangerous", async ({ page, product }) => {
  await page.goto(await product.start("demo"));
  const mode = page.getByRole("combobox", { name: "Permission mode" });
  const calm = await colours(mode);
  await mode.click();
  await page.getByRole("option", { name: /^Bypass permissions/ }).click();
  await expect(mode).toHaveText("Bypass permissions");
  await page.mouse.move(0, 0);
  await expect.poll(async () => (await colours(mode)).background).not.toBe(calm.background);
  expect((await colours(mode)).color).not.toBe(calm.color);
});

test("pickers say that they are loading", async ({ page, product }) => {
  mkdirSync(join(product.project, "inner"));
  await page.goto(await product.start("demo"));
  await page.getByRole("button", { name: "Browse folders" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("button", { name: "inner" })).toBeVisible();
  let answer: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route("**/api/directories?**", async (route) => {
    await held;
    await route.continue();
  });
  await dialog.getByRole("button", { name: "inner" }).click();
  // The folder that one comes from stays until the other is there.
  await expect(dialog.getByRole("status")).toHaveText("Loading…");
  await expect(dialog.getByRole("list")).toHaveAttribute("aria-busy", "true");
  await expect(dialog.getByRole("button", { name: "inner" })).toBeVisible();
  answer?.();
  await expect(dialog.getByText("No folders inside.")).toBeVisible();
  await expect(dialog.getByRole("status")).toBeHidden();
});

test("task lists are indented as lists are, and words begin on their own side", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "shapes", replies: [reply(shapes)] }] });
  await startSession(page, link, "shapes");
  const outer = page.getByRole("listitem").filter({ hasText: "the first" });
  const inner = page.getByRole("listitem").filter({ hasText: "one inside" }).last();
  const boxes = [outer.getByRole("checkbox").first(), inner.getByRole("checkbox")];
  const [first, second] = await Promise.all(boxes.map(box));
  expect(second && first && second.x - first.x).toBeGreaterThan(12);
  // Level with the text of the plain item: the box stands where its bullet does.
  const plain = page.getByRole("listitem").filter({ hasText: /^a plain one$/ });
  expect(Math.abs((await start(outer)).left - (await start(plain)).left)).toBeLessThan(6);
  const hebrew = await start(page.getByText("this paragraph begins on the right"));
  expect(hebrew.right).toBeLessThan(2);
  await expect(page.getByRole("list").filter({ hasText: "שתיים" }).last()).toHaveCSS("direction", "rtl");
});

test("what I said stands on the right in blue, and a long message is folded", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "hello", replies: [reply("An answer.")] }] });
  await startSession(page, link, "hello");
  const list = page.getByRole("log", { name: "Conversation" });
  const mine = list.getByText("hello", { exact: true });
  const answer = list.getByText("An answer.");
  await expect(answer).toBeVisible();
  const [said, answered] = [await box(mine), await box(answer)];
  expect(said.x).toBeGreaterThan(answered.x + 200);
  const [red, green, blue] = await mine.evaluate((element) => {
    const bubble = element.closest(".bg-bubble");
    return (bubble ? getComputedStyle(bubble).backgroundColor : "").match(/\d+/g)?.map(Number) ?? [];
  });
  expect(blue).toBeGreaterThan(Math.max(red ?? 255, green ?? 255));

  await say(page, `hello again\n${"of many words, ".repeat(400)}the end`);
  const more = list.getByRole("button", { name: "Show the whole message" });
  await expect(more).toBeInViewport();
  await expect(list.getByText("the end")).toHaveCount(0);
  await more.click();
  await expect(list.getByText("the end")).toHaveCount(1);
  await list.getByRole("button", { name: "Show less" }).click();
  await expect(list.getByText("the end")).toHaveCount(0);
});

const line = (number: number) => `export const line${number} = ${number};`;

test("an edit that waits is shown in its place, in the colours of its language", async ({
  page,
  product,
}) => {
  const file = join(product.project, "count.ts");
  writeFileSync(file, Array.from({ length: 20 }, (_, index) => `${line(index + 1)}\n`).join(""));
  const input = { file_path: file, old_string: line(10), new_string: 'export const ten = "10";' };
  const link = await product.start({
    rules: [
      {
        contains: "change it",
        replies: [
          { parts: [read(file)] },
          { parts: [{ type: "tool_use", name: "Edit", input }] },
          reply("Changed."),
        ],
      },
    ],
  });
  await startSession(page, link, "change it");
  const panel = page.getByRole("group", { name: "Permission for Edit" });
  const changes = panel.getByRole("table");
  const row = (words: string) => changes.getByRole("row").filter({ hasText: words });
  // Three lines before and three after, with the numbers that they have in the file.
  await expect(changes.getByRole("row")).toHaveCount(8);
  await expect(row(line(7))).toContainText("77");
  await expect(row(line(10))).toHaveText(`10-${line(10)}`);
  await expect(row("ten")).toHaveText('10+export const ten = "10";');
  await expect(row(line(13))).toBeVisible();
  await expect(row("ten").locator("span[style]").first()).toHaveText("export");
  // The path is said once, whole.
  await expect(panel.getByText("count.ts")).toHaveText([file]);
  await page.getByRole("button", { name: /^Allow/ }).click();
  await expect(page.getByText("Changed.")).toBeVisible();
  await expect(tool(page, "Edit").getByRole("row").filter({ hasText: "ten" })).toContainText("10+");
});

/** A model that reads the same files and then does something. */
async function readsMany(product: Product, ...then: Part[]): Promise<string> {
  const files = Array.from({ length: 4 }, (_, index) => join(product.project, `part${index}.txt`));
  for (const file of files) writeFileSync(file, "some words\n".repeat(40));
  return product.start({
    rules: [
      {
        contains: "look around",
        replies: [
          { parts: files.slice(0, 2).map(read) },
          { parts: files.slice(2).map(read) },
          ...(then.length > 0 ? [{ parts: then }] : []),
          reply("I have seen it all."),
        ],
      },
    ],
  });
}

test("files that were read are one line, and open to be seen", async ({ page, product }) => {
  await startSession(page, await readsMany(product), "look around");
  await expect(page.getByText("I have seen it all.")).toBeVisible();
  const group = page.getByRole("button", { name: /^Read 4 files/ });
  await expect(group).toContainText("part0.txt, part1.txt");
  await expect(tool(page, "Read")).toHaveCount(0);
  await group.click();
  await expect(tool(page, "Read")).toHaveCount(4);
  // After a reload it is one line again, whatever page of the log it came from.
  await page.reload();
  await expect(page.getByRole("button", { name: /^Read 4 files/ })).toBeVisible();
});

test("what is opened stays where it was clicked", async ({ page, product }) => {
  const link = await readsMany(product, {
    type: "tool_use",
    name: "Bash",
    input: { command: "seq 1 60", description: "Count" },
  });
  await startSession(page, link, "look around");
  await expect(page.getByText("I have seen it all.")).toBeVisible();
  const list = page.getByRole("log", { name: "Conversation" });
  /** Clicks it, and tells how far it has moved once everything is drawn. */
  const moved = async (part: Locator, done: () => Promise<void>) => {
    const before = await box(part);
    await part.click();
    await done();
    return Math.abs((await box(part)).y - before.y);
  };
  const group = list.getByRole("button", { name: /^Read 4 files/ });
  expect(await moved(group, () => expect(tool(page, "Read")).toHaveCount(4))).toBeLessThan(2);
  const one = tool(page, "Read").nth(1).getByRole("button").first();
  expect(await moved(one, () => expect(list.getByText("some words").first()).toBeVisible())).toBeLessThan(2);
  // What takes lines away above itself stays under the pointer, too.
  const more = tool(page, "Bash").getByRole("button", { name: /^Show \d+ more lines/ });
  await more.scrollIntoViewIfNeeded();
  await more.click();
  const less = tool(page, "Bash").getByRole("button", { name: "Show less" });
  await less.scrollIntoViewIfNeeded();
  const before = await box(less);
  await less.click();
  await expect(more).toBeVisible();
  expect(Math.abs((await box(more)).y - before.y)).toBeLessThan(2);
});
