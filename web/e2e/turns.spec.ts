/** What the page says of turns is true: what ran, what it took, what may be spent, and how it goes on after a failure. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attend, expect, say, startSession, test, tool } from "./product";

const bash = (command: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command, description: "Writes a file" } }],
});
/** The first sum of money in a text. */
const cost = (words: string) => Number(/\$(\d+\.\d+)/.exec(words)?.[1]);
const text = (words: string) => ({ parts: [{ type: "text" as const, text: words }] });

test("a command that was edited is shown as it ran, with the original one click away", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [{ contains: "write it", replies: [bash("echo asked > out.txt"), text("Written.")] }],
  });
  await startSession(page, link, "write it");
  const card = tool(page, "Bash");
  await attend(card.getByRole("group").first());
  await card.getByRole("button", { name: /Edit/ }).click();
  const field = card.getByRole("textbox").first();
  await field.fill("echo edited > out.txt");
  await card.getByRole("button", { name: /Allow as edited/ }).click();
  await expect(page.getByText("Written.")).toBeVisible();
  expect(readFileSync(join(product.project, "out.txt"), "utf8")).toBe("edited\n");

  const shows = async () => {
    await expect(card.getByText("Edited", { exact: true })).toBeVisible();
    await expect(card).toContainText("echo edited > out.txt");
    await expect(card).not.toContainText("echo asked > out.txt");
    await card.getByRole("button", { name: "What the agent had asked for" }).click();
    await expect(card).toContainText("echo asked > out.txt");
    await card.getByRole("button", { name: "What the agent had asked for" }).click();
  };
  await shows();
  await page.reload();
  await shows();
  const id = new URL(page.url()).hash.split("/").at(-1) ?? "";
  await page.goto(`${new URL(link).origin}/#/history/s/${id}`);
  await expect(page.getByText("Written.")).toBeVisible();
  await shows();
});

test("a turn has one line with what it took, and a budget is raised where it ran out", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "first", replies: [text("One.")] },
      { contains: "second", replies: [text("Two.")] },
      { contains: "Go on", replies: [text("Three.")] },
    ],
  });
  await startSession(page, link, "first");
  const results = page.getByRole("region", { name: "Result" });
  await expect(results.first()).toContainText("Done");
  const line = await results.first().innerText();
  expect(line).toMatch(/\$0\.\d+/);
  await say(page, "second");
  await expect(results).toHaveCount(2);
  expect(cost(await results.last().innerText())).toBeCloseTo(cost(line), 6);
  await expect(results.last().locator("[title$=' ms']")).toBeVisible();

  const panel = page.getByRole("complementary", { name: "Session details" });
  await panel.getByRole("button", { name: "Set a budget" }).click();
  await panel.getByRole("textbox", { name: "Budget in US dollars" }).fill(String(cost(line)));
  await panel.getByRole("button", { name: "Save" }).click();
  const totals = page.getByRole("group", { name: "Statistics" });
  await totals.getByRole("button", { name: "Raise budget" }).click();
  const amount = totals.getByRole("textbox", { name: "Budget in US dollars" });
  await expect(amount).toBeFocused();
  await amount.fill("0");
  await expect(totals.getByRole("button", { name: "Raise budget" })).toBeDisabled();
  await amount.press("Escape");
  await say(page, "Go on");
  await expect(
    page.getByRole("alert").filter({ hasText: "The budget of this session is used up" }),
  ).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("Go on");
  await totals.getByRole("button", { name: "Raise budget" }).click();
  await amount.fill("5");
  await amount.press("Enter");
  await expect(totals.getByRole("button", { name: "Raise budget" })).toBeHidden();
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await expect(page.getByText("Three.")).toBeVisible();
});

test("a clock runs while the agent works", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "slow",
        replies: [
          {
            parts: [
              { type: "gate", name: "go" },
              { type: "text", text: "At last." },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "slow");
  const clock = page.getByRole("log").locator("[data-clock]");
  await expect(clock).toHaveText("1s");
  await expect(clock).toHaveText("2s");
  await product.model?.open("go");
  await expect(page.getByText("At last.")).toBeVisible();
  await expect(clock).toBeHidden();
});

test("a server that stops says nothing untrue, and the prompt can be tried again", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      {
        contains: "carry on",
        replies: [
          {
            parts: [
              { type: "gate", name: "never" },
              { type: "text", text: "Here it is." },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "carry on");
  await product.model?.reached("never");
  const port = new URL(link).port;
  await product.stop();
  await expect(page.getByText("The server can’t be reached.", { exact: false })).toBeVisible();
  await expect(page.getByText("There is no such session", { exact: false })).toHaveCount(0);
  await page.setViewportSize({ width: 390, height: 800 });
  await expect(page.getByText("The server can’t be reached.", { exact: false })).toBeVisible();
  await page.setViewportSize({ width: 1440, height: 900 });
  await product.model?.open("never");
  await product.start({ rules: [] }, port);
  await expect(page.getByText("The server can’t be reached.", { exact: false })).toBeHidden();
  await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText("Here it is.")).toBeVisible();
});
