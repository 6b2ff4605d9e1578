/** Totals are the session's own, not those of the part that a page has loaded. */
import { join } from "node:path";
import { expect, say, startSession, test } from "./product";

/** So many pieces that the work before them is not on the page that a reload begins with. */
const LONG = "All of this was said a while ago. ".repeat(60);

test("a long session shows the same totals after a reload, with its first part not loaded", async ({
  page,
  product,
}) => {
  const write = (name: string, content: string) => ({
    type: "tool_use" as const,
    name: "Write",
    input: { file_path: join(product.project, name), content },
  });
  const list = ["completed", "in_progress"].map((status, index) => ({
    content: `Step ${index + 1}`,
    activeForm: `Doing step ${index + 1}`,
    status,
  }));
  const long = { parts: [{ type: "text" as const, text: LONG, chunk: 1 }] };
  product.claude = "2.1.113";
  const link = await product.start({
    rules: [
      {
        contains: "make two files",
        replies: [
          { parts: [{ type: "tool_use", name: "TodoWrite", input: { todos: list } }] },
          { parts: [write("one.txt", "1\n"), write("two.txt", "2\n")] },
          { parts: [{ type: "text", text: "Both are there." }] },
        ],
      },
      { contains: "tell more", replies: [long] },
    ],
  });
  await page.goto(link);
  await page.getByRole("textbox", { name: "Task" }).fill("make two files");
  await page.getByRole("combobox", { name: "Permission mode" }).click();
  await page.getByRole("option", { name: /^Accept edits/ }).click();
  await page.getByRole("button", { name: "Start session" }).click();
  await expect(page.getByText("Both are there.")).toBeVisible();
  await say(page, "tell more");
  const results = page.getByRole("region", { name: "Result" });
  await expect(results.last()).toContainText("Done");
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();

  const panel = page.getByRole("complementary", { name: "Session details" });
  const totals = page.getByRole("group", { name: "Statistics" });
  await expect(panel.getByRole("button", { name: /one\.txt/ })).toBeVisible();
  await expect(totals).toContainText("2 turns");
  const facts = async () => ({
    bar: await totals.innerText(),
    cost: await panel.getByRole("heading", { name: "Cost" }).locator("..").innerText(),
    todos: await panel.getByRole("heading", { name: "To do" }).locator("..").innerText(),
    files: await panel.getByRole("button", { name: /\.txt/ }).count(),
  });
  const before = await facts();
  expect(before).toMatchObject({ files: 2, todos: expect.stringContaining("Step 2") });

  // Nothing older than the newest page comes, whatever the page asks for.
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((frame) => {
      if (!String(frame).includes('"beforeSeq"')) server.send(frame);
    });
  });
  await page.reload();
  await expect(totals).toContainText("2 turns");
  await expect(page.getByText("Both are there.")).toHaveCount(0);
  await expect.poll(facts).toEqual(before);

  // A file of the part that is not loaded says so instead of showing nothing.
  await panel.getByRole("button", { name: /one\.txt/ }).click();
  await expect(page.getByRole("dialog").getByRole("button", { name: "Load more" })).toBeVisible();
});

test("what changes while an agent works is told as it happens", async ({ page, product }) => {
  product.claude = "2.1.113";
  const link = await product.start({
    rules: [
      {
        contains: "plan it",
        replies: [
          {
            parts: [
              {
                type: "tool_use",
                name: "TodoWrite",
                input: { todos: [{ content: "Look around", activeForm: "Looking", status: "pending" }] },
              },
            ],
          },
          {
            parts: [
              { type: "gate", name: "planned" },
              { type: "text", text: "That is the plan." },
            ],
          },
        ],
      },
    ],
  });
  await startSession(page, link, "plan it");
  await product.model?.reached("planned");
  const panel = page.getByRole("complementary", { name: "Session details" });
  await expect(panel.getByText("Look around")).toBeVisible();
  await product.model?.open("planned");
  await expect(page.getByText("That is the plan.")).toBeVisible();
});
