/** Finding words in a conversation, also where the page has not loaded them. */
import { expect, say, startSession, test } from "./product";

for (const [width, language] of [
  [1440, "en"],
  [390, "zh-CN"],
] as const) {
  test.describe(`at ${width}`, () => {
    test.use({ viewport: { width, height: 900 }, locale: language });

    test("Ctrl+F finds what is far up and not drawn, counts it, and goes from one to the next", async ({
      page,
      product,
    }) => {
      const filler = Array.from({ length: 150 }, (_, line) => `Line ${line} of a long answer.`).join("\n\n");
      const link = await product.start({
        rules: [
          {
            contains: "erste",
            replies: [{ parts: [{ type: "text", text: "The NEEDLE is here: 登录页面." }] }],
          },
          {
            contains: "long",
            replies: [{ parts: [{ type: "text", text: `${filler}\n\nThis was {{prompt}}.`, chunk: 40 }] }],
          },
          {
            contains: "command",
            replies: [
              {
                parts: [
                  { type: "tool_use", name: "Read", input: { file_path: `${product.project}/needle.txt` } },
                ],
              },
              { parts: [{ type: "text", text: "No such file." }] },
            ],
          },
        ],
      });
      await page.goto(link);
      const composer = page.locator("textarea");
      await composer.fill("erste");
      await composer.press("Enter");
      await expect(page.getByText("登录页面")).toBeVisible();
      for (const round of [1, 2, 3]) {
        await composer.fill(`long ${round}`);
        await composer.press("Enter");
        await expect(page.getByText(`This was long ${round}.`)).toBeVisible();
      }
      await composer.fill("command");
      await composer.press("Enter");
      await expect(page.getByText("No such file.")).toBeVisible();
      // Most of it is not loaded after a reload, and the beginning is not drawn.
      await page.reload();
      await expect(page.getByText("No such file.")).toBeVisible();
      await expect(page.getByText("登录页面")).toHaveCount(0);

      await page.keyboard.press("Control+f");
      const field = page.getByRole("search").getByRole("searchbox");
      await expect(field).toBeFocused();
      await page.keyboard.type("needle");
      const status = page.getByRole("search").getByRole("status");
      // In the answer, and in the card of the call, whose result counts with it.
      await expect(status).toHaveText(language === "en" ? "2 of 2" : "第 2 个，共 2 个");
      await page.keyboard.press("Enter");
      await expect(status).toHaveText(language === "en" ? "1 of 2" : "第 1 个，共 2 个");
      await expect(page.getByText("登录页面")).toBeInViewport();
      const coloured = () =>
        page.evaluate(() => [...(CSS.highlights.get("found-current") ?? [])].map(String).join());
      await expect.poll(coloured).toBe("NEEDLE");
      await page.keyboard.press("Shift+Enter");
      await expect(status).toHaveText(language === "en" ? "2 of 2" : "第 2 个，共 2 个");

      await field.fill("登录");
      await expect(status).toHaveText(language === "en" ? "1 of 1" : "第 1 个，共 1 个");
      await expect(page.getByText("登录页面")).toBeInViewport();
      await field.fill("nowhere to be found");
      await expect(status).toHaveText(language === "en" ? "No results" : "没有结果");
      await page.keyboard.press("Escape");
      await expect(field).toHaveCount(0);
      await expect(composer).toBeFocused();
    });
  });
}

test("what is selected is looked for", async ({ page, product }) => {
  const link = await product.start({
    rules: [{ contains: "hello", replies: [{ parts: [{ type: "text", text: "One word, another word." }] }] }],
  });
  await startSession(page, link, "hello");
  const answer = page.getByText("One word, another word.");
  await answer.click({ clickCount: 2, position: { x: 10, y: 10 } });
  await page.keyboard.press("Control+f");
  await expect(page.getByRole("search").getByRole("searchbox")).toHaveValue("One");
  await page.keyboard.press("Escape");
  await say(page, "hello again");
});
