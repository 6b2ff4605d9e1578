/** Order among many sessions: sections, pins, groups, tags, tabs, the queue of what needs the user, and panes side by side. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expectAccessible } from "./access";
import { expect, type Product, say, startSession, test } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const asks = (command: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command, description: "Touch" } }],
});
const works = (gate: string) => ({
  parts: [
    { type: "text" as const, text: "Working. " },
    { type: "gate" as const, name: gate },
    { type: "text" as const, text: "Finished." },
  ],
});

const list = (page: Page) => page.getByRole("region", { name: "Sessions" });
const heading = (page: Page, name: string | RegExp) =>
  list(page).getByRole("button", { name, expanded: true });
const entry = (page: Page, name: string | RegExp) => list(page).getByRole("link", { name });

/** The headings and titles of the list, as they stand. */
async function rows(page: Page): Promise<string[]> {
  const found = await list(page)
    .locator("[data-row]")
    .evaluateAll((all) =>
      all
        .toSorted((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
        .map((row) => row.querySelector("span.truncate")?.textContent ?? ""),
    );
  return found;
}

async function started(page: Page, prompt: string): Promise<void> {
  await page.getByRole("link", { name: "New session" }).click();
  await page.getByRole("textbox", { name: "Task" }).fill(prompt);
  await page.getByRole("button", { name: "Start session" }).click();
  await expect(page).toHaveURL(/#\/s\//);
}

async function menu(page: Page, title: string, ...items: string[]): Promise<void> {
  await entry(page, new RegExp(title)).hover();
  await list(page)
    .getByRole("button", { name: `Actions for ${title}` })
    .click();
  for (const item of items) await page.getByRole("menuitem", { name: item }).click();
}

const script = {
  rules: [
    { contains: "alpha", replies: [reply("Alpha is done.")] },
    { contains: "beta", replies: [reply("Beta is done.")] },
    { contains: "gamma", replies: [reply("Gamma is done.")] },
    { contains: "once more", replies: [reply("As you wish.")] },
  ],
};

async function three(page: Page, product: Product): Promise<string> {
  const link = await product.start(script);
  await startSession(page, link, "alpha task");
  await expect(page.getByText("Alpha is done.")).toBeVisible();
  for (const name of ["beta", "gamma"]) {
    await started(page, `${name} task`);
    await expect(page.getByText(new RegExp(`${name} is done.`, "i"))).toBeVisible();
  }
  return link;
}

test("pins, groups, tags and the own order are the same in another window, and after a restart", async ({
  page,
  product,
  context,
}) => {
  const link = await three(page, product);
  const other = await context.newPage();
  await other.goto(new URL("/#/inbox", link).href);
  await expect(entry(other, /alpha task/)).toBeVisible();

  await menu(page, "alpha task", "Pin");
  await expect(heading(page, "Pinned")).toBeVisible();
  await menu(page, "beta task", "Move to group", "New group…");
  await page.getByRole("textbox", { name: "Group name" }).fill("Release");
  await page.keyboard.press("Enter");
  await expect(heading(page, "Release")).toBeVisible();
  await menu(page, "gamma task", "Tags…");
  await page.getByRole("textbox", { name: "Add a tag" }).fill("#late");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(entry(page, /gamma task.*#late/)).toBeVisible();

  const arranged = ["Pinned", "alpha task", "Release", "beta task", "project", "gamma task"];
  await expect.poll(() => rows(page)).toEqual(arranged);
  await expect.poll(() => rows(other)).toEqual(arranged);
  await expectAccessible(page, "sections");

  // Another window takes the session out of the group, and this one hears of it.
  await menu(other, "beta task", "Move to group", "No group");
  const ungrouped = ["Pinned", "alpha task", "Release", "project", "gamma task", "beta task"];
  await expect.poll(() => rows(page)).toEqual(ungrouped);

  await product.stop();
  await product.start(script, new URL(link).port);
  await page.reload();
  await expect.poll(() => rows(page)).toEqual(ungrouped);
  await expect(page.getByRole("list", { name: "Open sessions" }).getByRole("link").nth(1)).toContainText(
    "alpha task",
  );
  await list(page).getByRole("searchbox").fill("#la");
  await expect.poll(() => rows(page)).toEqual(["gamma task"]);
});

test("the list is used with the keys alone: walked, folded, found by letters, and put in order", async ({
  page,
  product,
}) => {
  await three(page, product);
  await page.keyboard.press("Alt+s");
  await expect(entry(page, /gamma task/)).toBeFocused();
  await page.keyboard.press("a");
  await expect(entry(page, /alpha task/)).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(entry(page, /beta task/)).toBeFocused();
  await page.keyboard.press("End");
  await expect(entry(page, /alpha task/)).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("log").getByText("Alpha is done.")).toBeVisible();

  // Sorted by the last change nothing can be moved; the page says how it can.
  const ownOrder = page.getByRole("button", { name: "Use your own order" }).first();
  await expect(async () => {
    // Opening the session takes the focus once more, maybe only after this.
    await page.keyboard.press("Alt+s");
    await page.keyboard.press("Alt+ArrowUp");
    await expect(ownOrder).toBeVisible({ timeout: 2_000 });
  }).toPass();
  await ownOrder.click();
  await expect.poll(() => rows(page)).toEqual(["gamma task", "beta task", "alpha task"]);
  await page.keyboard.press("Alt+s");
  await page.keyboard.press("Alt+ArrowUp");
  await page.keyboard.press("Alt+ArrowUp");
  await expect.poll(() => rows(page)).toEqual(["alpha task", "gamma task", "beta task"]);
  await expect(entry(page, /alpha task/)).toBeFocused();
  // It stays there whatever happens in the others.
  await entry(page, /beta task/).click();
  await page.reload();
  await expect.poll(() => rows(page)).toEqual(["alpha task", "gamma task", "beta task"]);

  await menu(page, "gamma task", "Pin");
  await expect(heading(page, "Pinned")).toBeVisible();
  await heading(page, "Pinned").focus();
  await page.keyboard.press("ArrowLeft");
  await expect(entry(page, /gamma task/)).toBeHidden();
  await page.reload();
  await expect(entry(page, /beta task/)).toBeVisible();
  await expect(entry(page, /gamma task/)).toBeHidden();
  await list(page).getByRole("button", { name: "Pinned" }).focus();
  await page.keyboard.press("ArrowRight");
  await expect(entry(page, /gamma task/)).toBeVisible();
});

test("a session is dragged among the pinned, and into a group", async ({ page, product }) => {
  await three(page, product);
  for (const name of ["alpha", "beta"]) await menu(page, `${name} task`, "Pin");
  await expect.poll(() => rows(page)).toEqual(["Pinned", "alpha task", "beta task", "project", "gamma task"]);
  await entry(page, /beta task/).dragTo(entry(page, /alpha task/), {
    targetPosition: { x: 60, y: 4 },
  });
  await expect.poll(() => rows(page)).toEqual(["Pinned", "beta task", "alpha task", "project", "gamma task"]);
  await list(page).getByRole("button", { name: "Filter and sort" }).click();
  await page.getByRole("menuitem", { name: "New group…" }).click();
  await page.getByRole("textbox", { name: "Group name" }).fill("Later");
  await page.keyboard.press("Enter");
  await entry(page, /gamma task/).dragTo(heading(page, "Later"));
  await expect.poll(() => rows(page)).toEqual(["Pinned", "beta task", "alpha task", "Later", "gamma task"]);

  // A group that was removed by mistake comes back with what was in it.
  const grouped = await rows(page);
  await heading(page, "Later").hover();
  await list(page).getByRole("button", { name: "Actions for group Later" }).click();
  await page.getByRole("menuitem", { name: "Remove group" }).click();
  await expect.poll(() => rows(page)).toEqual(["Pinned", "beta task", "alpha task", "project", "gamma task"]);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect.poll(() => rows(page)).toEqual(grouped);
  await page.reload();
  await expect.poll(() => rows(page)).toEqual(grouped);
});

test("what needs the user is one queue: counted the same everywhere, walked with one key, and said when it is empty", async ({
  page,
  product,
}) => {
  const other = join(product.project, "other");
  mkdirSync(other);
  const link = await product.start({
    rules: [
      { contains: "first", replies: [asks("touch one"), reply("First is done.")] },
      { contains: "second", replies: [asks("touch two"), reply("Second is done.")] },
      { contains: "quiet", replies: [reply("Nothing to ask.")] },
      { contains: "long", replies: [works("go")] },
    ],
  });
  await page.goto(link);
  await expect(page.getByRole("textbox", { name: "Task" })).toBeFocused();
  await page.keyboard.press("Alt+j");
  await expect(page.getByText("Nothing needs you.")).toBeVisible();

  await startSession(page, new URL("/#/new", link).href, "first question");
  await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await started(page, "second question");
  await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await started(page, "long work");
  await product.model?.reached("go");
  await started(page, "quiet work");
  await expect(page.getByText("Nothing to ask.")).toBeVisible();
  await expect
    .poll(() => rows(page))
    .toEqual([
      "Needs you",
      "first question",
      "second question",
      "Running",
      "long work",
      "project",
      "quiet work",
    ]);
  await expect(heading(page, /Needs you 2/)).toBeVisible();
  await expect(page.getByRole("link", { name: "Inbox 2" })).toBeVisible();
  await expect(page).toHaveTitle(/^\(2\)/);

  // From the message field of another session, with words in it.
  await page.getByRole("textbox", { name: "Message" }).fill("half a thought");
  const request = page.locator("[data-decision=waiting]");
  for (const title of ["first question", "second question", "first question"]) {
    await page.keyboard.press("Alt+j");
    await expect(page.getByRole("heading", { name: title })).toBeAttached();
    await expect(request).toBeFocused();
  }
  await page.keyboard.press("Alt+k");
  await expect(page.getByRole("heading", { name: "second question" })).toBeAttached();
  await expect(request).toHaveAttribute("aria-busy", "false");
  await page.keyboard.press("y");
  await expect(page.getByText("Second is done.")).toBeVisible();
  await expect(page).toHaveTitle(/^\(1\)/);
  await expect(page.getByRole("link", { name: "Inbox 1" })).toBeVisible();
  await page.keyboard.press("Alt+j");
  await expect(request).toBeFocused();
  await page.keyboard.press("Alt+j");
  await expect(page.getByText("Nothing else needs you.")).toBeVisible();
  await expect(request).toHaveAttribute("aria-busy", "false");
  await page.keyboard.press("y");
  await expect(page.getByText("First is done.")).toBeVisible();
  await expect(page).not.toHaveTitle(/^\(/);
  await page.keyboard.press("Alt+j");
  await expect(page.getByText("Nothing needs you.").last()).toBeVisible();
  await product.model?.open("go");
});

test("tabs are for what is used or kept; what is only looked at has one tab, which the next one takes", async ({
  page,
  product,
}) => {
  const link = await three(page, product);
  const tabs = page.getByRole("list", { name: "Open sessions" });
  await expect(tabs.getByRole("link")).toHaveText(["New task", "alpha task", "beta task", "gamma task"]);
  for (const name of ["alpha", "beta", "gamma"])
    await tabs.getByRole("button", { name: `Close tab “${name} task”` }).click();
  await page.goto(new URL("/#/inbox", link).href);
  await entry(page, /alpha task/).click();
  await expect(tabs.getByRole("link")).toHaveText(["New task", "alpha task"]);
  await entry(page, /beta task/).click();
  await expect(tabs.getByRole("link")).toHaveText(["New task", "beta task"]);
  await menu(page, "beta task", "Keep as tab");
  await entry(page, /alpha task/).click();
  await expect(tabs.getByRole("link")).toHaveText(["New task", "beta task", "alpha task"]);
  // Who says something there wants to come back.
  await say(page, "once more");
  await expect(page.getByText("As you wish.")).toBeVisible();
  await entry(page, /gamma task/).click();
  await expect(tabs.getByRole("link")).toHaveText(["New task", "beta task", "alpha task", "gamma task"]);
  for (const tab of await tabs.getByRole("listitem").all())
    expect((await tab.boundingBox())?.width).toBeGreaterThan(80);
});

test("sessions stand side by side, keys belong to the active one, and all of it is remembered", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "left", replies: [asks("touch left"), reply("Left is done.")] },
      { contains: "right", replies: [asks("touch right"), reply("Right is done.")] },
    ],
  });
  await startSession(page, link, "left task");
  await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await started(page, "right task");
  await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await page.keyboard.press("Alt+Backslash");
  const search = page.getByRole("combobox", { name: "Search sessions" });
  await expect(search).toBeFocused();
  await expectAccessible(page, "a pane without a session");
  await search.fill("left");
  await page.keyboard.press("Enter");
  const panes = page.locator("section[data-pane]");
  await expect(panes).toHaveCount(2);
  const [right, left] = [panes.first(), panes.last()];
  await expect(left.getByRole("heading", { name: "left task" }).first()).toBeVisible();
  await expect(left).toHaveAttribute("aria-current", "true");

  // The keys answer what waits in the active pane, not what is first on the page.
  await expect(left.locator("[data-decision=waiting]")).toHaveAttribute("aria-busy", "false");
  await left.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.press("Control+Enter");
  await expect(left.getByText("Left is done.")).toBeVisible();
  await expect(right.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await expectAccessible(page, "panes");
  await page.keyboard.press("Alt+o");
  await expect(right).toHaveAttribute("aria-current", "true");
  await expect(right.getByRole("textbox", { name: "Message" })).toBeFocused();

  const edge = page.getByRole("separator", { name: "Width of the panes" });
  await edge.focus();
  for (let time = 0; time < 4; time += 1) await page.keyboard.press("ArrowRight");
  await expect(edge).toHaveAttribute("aria-valuenow", "62");
  const box = await edge.boundingBox();
  if (!box) throw new Error("there is no edge");
  await page.mouse.move(box.x, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x - 120, box.y + 200, { steps: 4 });
  await page.mouse.up();
  const width = await edge.getAttribute("aria-valuenow");
  expect(Number(width)).toBeLessThan(58);
  await page.reload();
  await expect(panes).toHaveCount(2);
  await expect(edge).toHaveAttribute("aria-valuenow", width ?? "");
  await expect(right).toHaveAttribute("aria-current", "true");
  await expect(right.getByRole("textbox", { name: "Message" })).toBeFocused();

  // On a phone one at a time.
  await page.setViewportSize({ width: 390, height: 844 });
  await expect(left).toBeHidden();
  await page.getByRole("group", { name: "Panes" }).getByRole("button", { name: "left task" }).click();
  await expect(left).toBeVisible();
  await expect(right).toBeHidden();
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.keyboard.press("Alt+w");
  await expect(panes).toHaveCount(0);
  await expect(page.getByRole("textbox", { name: "Message" })).toBeFocused();
  await expect(page.getByRole("heading", { name: "right task" })).toBeAttached();
});

test("a session stands beside its changes, which follow it", async ({ page, product }) => {
  const write = (name: string, content: string) => ({
    parts: [
      {
        type: "tool_use" as const,
        name: "Write",
        input: { file_path: join(product.project, name), content },
      },
    ],
  });
  const link = await product.start({
    rules: [
      { contains: "poem", replies: [write("poem.txt", "roses\nviolets\n"), reply("Written.")] },
      { contains: "nothing", replies: [reply("Nothing written.")] },
    ],
  });
  await startSession(page, link, "write nothing");
  await expect(page.getByText("Nothing written.")).toBeVisible();
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.press("Alt+c");
  // Who looks at changes goes on writing where they were.
  await expect(page.getByRole("textbox", { name: "Message" })).toBeFocused();
  await expect(
    page.locator("section[data-pane=active]").getByRole("textbox", { name: "Message" }),
  ).toBeVisible();
  const changes = page.locator("section[data-pane]").last();
  await expect(changes.getByText("No files changed yet.")).toBeVisible();
  await started(page, "write a poem");
  await expect(page.getByRole("button", { name: /^Allow/ })).toBeVisible();
  await expect(page.locator("[data-decision=waiting]")).toHaveAttribute("aria-busy", "false");
  await page.keyboard.press("Control+Enter");
  await expect(changes.getByText("1 file changed")).toBeVisible();
  await expect(changes.getByText("violets")).toBeVisible();
  // Back to the other session: its changes come along.
  await entry(page, /write nothing/).click();
  await expect(changes.getByText("No files changed yet.")).toBeVisible();
  await page.getByRole("main").getByRole("button", { name: "Hide changes" }).click();
  await expect(page.locator("section[data-pane]")).toHaveCount(0);
});
