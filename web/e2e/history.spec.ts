/** The history: what was said in a terminal is found, read, taken away and gone on with here. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { examine } from "./access";
import { expect, type Product, type Script, test } from "./product";

const text = (words: string) => ({ type: "text" as const, text: words });
const script: Script = {
  rules: [
    {
      contains: "plant a baobab",
      replies: [
        {
          parts: [
            { type: "thinking", thinking: "Where is there room?" },
            { type: "tool_use", name: "Write", input: { file_path: "tree.txt", content: "green\n" } },
          ],
        },
        { parts: [text("The baobab stands **tall**.")] },
      ],
    },
    { contains: "浇水", replies: [{ parts: [text("已经给登录页面旁的树浇了水。")] }] },
    { contains: "what of a copy", replies: [{ parts: [text("A copy it is.")] }] },
    { contains: "and now prune it", replies: [{ parts: [text("Pruned.")] }] },
  ],
};

/** The conversations; beside each there is a link that goes on with it. */
const rows = (page: Page) =>
  page
    .getByRole("region", { name: "Conversations", exact: true })
    .getByRole("link")
    .filter({ hasText: /\d messages?/ });

/** The Write tool is given an absolute path, which is known only once there is a project. */
function inProject(product: Product): Script {
  return JSON.parse(
    JSON.stringify(script).replace('"tree.txt"', JSON.stringify(join(product.project, "tree.txt"))),
  ) as Script;
}

test("a conversation in a terminal appears, is found, read and exported", async ({ page, product }) => {
  await page.goto(await product.start(inProject(product)));
  await page.getByRole("link", { name: "History", exact: true }).click();
  await expect(page.getByText("No conversations yet.")).toBeVisible();
  await examine(page, "empty history");

  // It comes into the open list by itself.
  const tree = await product.inTerminal("plant a baobab");
  await expect(rows(page).filter({ hasText: "plant a baobab" })).toBeVisible();
  // Written a moment ago, but nobody is at it any more.
  await expect(rows(page).getByText("Live", { exact: true })).toHaveCount(0);
  await product.inTerminal("给树浇水");
  await expect(rows(page)).toHaveCount(2);
  await expect(page.getByRole("complementary", { name: "Projects" })).toContainText("project");
  await examine(page, "list");

  // Narrowed down, and reset.
  await page.getByRole("combobox", { name: "Tool" }).click();
  await page.getByRole("option", { name: "Write" }).click();
  await expect(rows(page)).toHaveCount(1);
  await page.getByRole("button", { name: "Reset" }).click();
  await page.getByRole("textbox", { name: "Changed file" }).fill("tree");
  await expect(rows(page)).toHaveCount(1);
  await page.getByRole("textbox", { name: "Changed file" }).fill("");
  await expect(rows(page)).toHaveCount(2);

  // Words in the middle of a Chinese sentence open the conversation at the message.
  const search = page.getByRole("searchbox", { name: "Search all conversations" });
  await search.fill("录页面");
  const hit = page.getByRole("region", { name: "What was found" }).getByRole("link");
  await expect(hit.locator("mark")).toHaveText("录页面");
  await hit.click();
  await expect(page.locator("[data-wanted]")).toContainText("已经给登录页面旁的树浇了水。");
  await page.getByRole("link", { name: "Back to the list" }).click();
  await expect(search).toHaveValue("录页面");
  // So does what is folded away.
  await search.fill("there room");
  await expect(hit.locator("mark").first()).toHaveText("there");
  await hit.click();
  await expect(page.locator("[data-wanted]").getByText("Where is there room?")).toBeInViewport();
  await page.getByRole("link", { name: "Back to the list" }).click();
  // Whoever searches while conversations are still being read is told so, and sees what comes.
  const found = "**/api/history/search?**";
  await page.route(found, (route) =>
    route.fulfill({ json: { results: [], total: 0, total_is_exact: true, is_complete: false } }),
  );
  await search.fill("baobab");
  await expect(page.getByText("Not all conversations have been read yet")).toBeVisible();
  await page.unroute(found);
  await expect(hit.locator("mark").first()).toHaveText("baobab");
  await expect(page.getByText("Not all conversations have been read yet")).toHaveCount(0);
  await search.press("Escape");

  // Read with the same cards as in a session.
  await rows(page).filter({ hasText: "plant a baobab" }).click();
  await expect(page.getByRole("article", { name: "Tool Write" })).toBeVisible();
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Thought" })).toBeVisible();
  await examine(page, "conversation");

  await page.getByRole("button", { name: "Export" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: "Markdown" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toBe(`${tree}.md`);
  expect(readFileSync(await file.path(), "utf8")).toContain("The baobab stands **tall**.");

  await page.getByRole("button", { name: "Continue in terminal" }).click();
  await expect(page.getByRole("dialog")).toContainText(`claude --resume ${tree}`);
  await page.keyboard.press("Escape");
});

test("a conversation in a terminal is watched, forked, taken over and continued", async ({
  page,
  product,
}) => {
  const link = await product.start(inProject(product));
  const tree = await product.inTerminal("plant a baobab");
  await page.goto(link);
  await page.getByRole("link", { name: "History", exact: true }).click();
  // To go on with it is one step from the list.
  await page.getByRole("link", { name: "Continue “plant a baobab”" }).click();
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Continue this conversation…" })).toBeFocused();
  await page.goBack();
  await rows(page).click();
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();

  // It grows while it is read.
  await product.inTerminal("给树浇水", "--resume", tree);
  await expect(page.getByText("已经给登录页面旁的树浇了水。")).toBeInViewport();

  // A program that works on it is shown, and gives way.
  const elsewhere = product.keepInTerminal(tree);
  const warning = page.getByRole("status").filter({ hasText: `process ${elsewhere.pid}` });
  await expect(warning).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Live");
  await examine(page, "driven elsewhere");
  const prompt = page.getByRole("textbox", { name: "Continue this conversation…" });
  // A fork leaves it to that program.
  await prompt.fill("what of a copy");
  await page.getByRole("button", { name: "Fork" }).click();
  await expect(page.getByText("A copy it is.")).toBeVisible();
  await expect(page).not.toHaveURL(new RegExp(tree));
  expect(JSON.stringify(await product.model?.heard("what of a copy"))).toContain("The baobab stands");
  // It begins with what was said before.
  await expect(page.getByText("The baobab stands tall.")).toHaveCount(1);
  await page.reload();
  await expect(page.getByText("A copy it is.")).toBeVisible();
  await expect(page.getByText("The baobab stands tall.")).toHaveCount(1);
  await page.goBack();
  const gone = new Promise((resolve) => elsewhere.once("exit", resolve));
  await warning.getByRole("button", { name: "Take over" }).click();
  await gone;
  await expect(warning).toHaveCount(0);

  // And it goes on here, with all that was said before.
  await prompt.press("Enter");
  await expect(page.getByRole("alert")).toHaveText("Please say how to go on.");
  await prompt.fill("and now prune it");
  await prompt.press("Enter");
  await expect(page).toHaveURL(new RegExp(`#/s/${tree}$`));
  await expect(page.getByText("Pruned.")).toBeVisible();
  // Under the name that it had: that of its first message.
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("plant a baobab");
  await page.goto(`${new URL(link).origin}/#/history`);
  // Being one of our sessions now, it is opened where it is. The fork began with the same message.
  await page.getByRole("link", { name: "Continue “plant a baobab”" }).first().click();
  await expect(page).toHaveURL(new RegExp(`#/s/${tree}$`));
  // With its messages, which are told before those of today.
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();
  await expect(page.getByRole("article", { name: "Tool Write" })).toBeVisible();
  expect(JSON.stringify(await product.model?.heard("and now prune it"))).toContain("The baobab stands");
});

test("usage is shown by day, project, model and conversation", async ({ page, product }) => {
  const link = await product.start(inProject(product));
  await product.inTerminal("plant a baobab");
  await page.goto(link);
  await page.getByRole("link", { name: "History", exact: true }).click();
  await page.getByRole("link", { name: "Usage" }).click();
  await expect(page.getByRole("img", { name: /^Cost of each day/ })).toBeVisible();
  const table = page.getByRole("table");
  await expect(table.getByRole("row")).toHaveCount(2);
  await examine(page, "usage");
  await page.getByRole("tab", { name: "Conversation" }).click();
  await table.getByRole("link", { name: "plant a baobab" }).click();
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();
});

test("the vault keeps what is deleted, and gives it back", async ({ page, product }) => {
  const link = await product.start(inProject(product));
  const tree = await product.inTerminal("plant a baobab");
  const projects = join(product.claudeHome, "projects");
  const [folder = ""] = readdirSync(projects);
  // As many more as make a second page.
  const line = readFileSync(join(projects, folder, `${tree}.jsonl`), "utf8")
    .split("\n")
    .find((each) => each.includes('"type":"user"'));
  for (let number = 10; number < 62; number += 1) {
    const id = `00000000-0000-4000-8000-0000000000${number}`;
    writeFileSync(
      join(projects, folder, `${id}.jsonl`),
      `${line?.replaceAll(tree, id).replaceAll("plant a baobab", `weed bed ${number}`)}\n`,
    );
  }
  await page.goto(link);
  await page.getByRole("link", { name: "History", exact: true }).click();
  await expect(
    page.getByText("Claude Code deletes conversations that have not changed for 30 days."),
  ).toBeVisible();
  const vault = page.getByRole("switch", { name: "Keep copies in the vault" });
  await expect(vault).not.toBeChecked();
  await vault.click();
  await expect(vault).toBeChecked();
  const content = page.getByRole("button", { name: /^53 conversations in the vault/ });
  await expect(content).toBeVisible();

  for (const name of readdirSync(join(projects, folder)))
    rmSync(join(projects, folder, name), { recursive: true });
  await expect(page.getByText("No conversations yet.")).toBeVisible();
  await content.click();
  const dialog = page.getByRole("dialog", { name: "The vault" });
  await examine(page, "vault");
  const kept = dialog.getByRole("listitem");
  await expect(kept).toHaveCount(50);
  await dialog.getByRole("button", { name: "Show 3 more" }).click();
  await expect(kept).toHaveCount(53);
  await expect(dialog.getByRole("button", { name: /more$/ })).toHaveCount(0);
  await kept.filter({ hasText: "plant a baobab" }).getByRole("button", { name: "Restore" }).click();
  await expect(page.getByText("The baobab stands tall.")).toBeVisible();
});

test.describe("on a phone, in the dark, in Chinese", () => {
  test.use({ viewport: { width: 390, height: 844 }, colorScheme: "dark", locale: "zh-CN" });

  test("nothing is cut off", async ({ page, product }) => {
    const link = await product.start(inProject(product));
    await product.inTerminal("plant a baobab");
    await page.goto(link);
    for (const place of ["#/history", "#/history?q=baobab", "#/history/usage"]) {
      await page.goto(`${new URL(link).origin}/${place}`);
      await expect(page.getByRole("heading", { name: "历史记录" })).toBeVisible();
      await expect(page.getByRole("status", { name: "加载中…" })).toHaveCount(0);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      await examine(page, "on a phone");
    }
    await page.goto(`${new URL(link).origin}/#/history`);
    await page.getByRole("link", { name: /^plant a baobab/ }).click();
    await expect(page.getByText("The baobab stands tall.")).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await examine(page, "conversation on a phone");
  });
});
