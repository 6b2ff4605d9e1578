/** What answers are made of: Markdown, code, formulas, diagrams. */
import { expect, startSession, test } from "./product";

const answer = [
  "Here is **the plan**:",
  "| step | state |\n| --- | --- |\n| parse | done |\n| draw | open |",
  "- [x] read it\n- [ ] draw it",
  "```rust\nfn main() {}\n```",
  "So $e^{i\\pi} = -1$ it is, from $5 on.",
  "```mermaid\nflowchart LR\n  A[Prompt] --> B{Allowed?}\n  B -->|yes| C[Run]\n  B -->|no| D[Say why]\n```",
  "```mermaid\nnot a diagram at all\n```",
  "The end.",
].join("\n\n");

const shorterSide = (image: HTMLImageElement) => Math.min(image.naturalWidth, image.naturalHeight);

test("an answer has tables, tasks, colours, formulas and diagrams, each loaded when it is used", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "plain", replies: [{ parts: [{ type: "text", text: "Nothing but words." }] }] },
      {
        contains: "everything",
        replies: [
          {
            parts: [
              { type: "text", text: answer.slice(0, 330), chunk: 40 },
              { type: "gate", name: "half" },
              { type: "text", text: answer.slice(330), chunk: 40 },
            ],
          },
        ],
      },
    ],
  });
  const heavy: string[] = [];
  page.on("request", (request) => {
    if (/temml|mermaid|diagram/.test(request.url())) heavy.push(new URL(request.url()).pathname);
  });
  await startSession(page, link, "plain words");
  await expect(page.getByText("Nothing but words.")).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  expect(heavy).toEqual([]);

  await page.getByRole("textbox", { name: "Message" }).fill("show me everything");
  await page.keyboard.press("Enter");
  await product.model?.reached("half");
  const list = page.getByRole("log", { name: "Conversation" });
  // Half a diagram is shown as what has been written of it.
  await expect(list.getByText("flowchart LR")).toBeVisible();
  await expect(list.getByRole("img", { name: /flowchart/ })).toBeHidden();
  await product.model?.open("half");
  await expect(list.getByText("The end.")).toBeInViewport();

  await expect(list.getByRole("cell", { name: "parse" })).toBeVisible();
  await expect(list.getByRole("checkbox").first()).toBeChecked();
  await expect(list.locator("math")).toBeVisible();
  await expect(list.getByText("from $5 on")).toBeVisible();
  await expect(list.locator("code span[style]").first()).toHaveText(/fn/);

  const diagram = list.getByRole("img", { name: /flowchart LR/ });
  await expect(diagram).toBeVisible();
  // It has its place before it has been loaded.
  await expect.poll(() => diagram.evaluate(shorterSide)).toBeGreaterThan(50);
  await expect(list.getByText("This diagram can't be drawn")).toBeVisible();
  await expect(list.getByText("not a diagram at all")).toBeVisible();
  const figure = list.locator("figure").first();
  await figure.getByRole("button", { name: "Show the source" }).click();
  await expect(figure.getByText("flowchart LR")).toBeVisible();
  await figure.getByRole("button", { name: "Show the diagram" }).click();
  await expect(diagram).toBeVisible();

  // Where it is drawn has no part in the page.
  const frame = page.frames().find((each) => each.url().endsWith("/diagram.html"));
  expect(await frame?.evaluate(() => self.origin)).toBe("null");
});
