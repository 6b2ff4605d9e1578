/** The pictures in the documents: `npm run screenshots` makes them anew. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, say, startSession, test } from "./product";

const docs = process.env.TILLER_SCREENSHOTS ?? "";

const source = `pub fn greet(name: &str) -> String {
    format!("Hello {name}")
}
`;

const script = (file: string) => ({
  rules: [
    {
      contains: "friendl",
      replies: [
        {
          parts: [
            {
              type: "thinking" as const,
              thinking: "First see what is there, then change as little as possible.",
            },
            { type: "text" as const, text: "I'll look at the greeting first." },
            { type: "tool_use" as const, name: "Read", input: { file_path: file } },
          ],
        },
        {
          parts: [
            {
              type: "tool_use" as const,
              name: "Edit",
              input: {
                file_path: file,
                old_string: '    format!("Hello {name}")',
                new_string: '    let name = name.trim();\n    format!("Good to see you, {name}!")',
              },
            },
          ],
        },
        {
          parts: [
            {
              type: "text" as const,
              text: "The greeting is friendlier now, and ignores stray spaces.\n\n| case | before | now |\n| --- | --- | --- |\n| `world` | Hello world | Good to see you, world! |\n| ` world ` | Hello  world  | Good to see you, world! |\n\nNext I would run the tests.",
            },
          ],
        },
      ],
    },
    {
      contains: "test",
      replies: [
        {
          parts: [
            {
              type: "tool_use" as const,
              name: "Bash",
              input: { command: "cargo test --workspace", description: "Run all tests" },
            },
          ],
        },
      ],
    },
    {
      contains: "release",
      replies: [
        {
          parts: [
            {
              type: "tool_use" as const,
              name: "AskUserQuestion",
              input: {
                questions: [
                  {
                    question: "Which version should this be?",
                    header: "Version",
                    multiSelect: false,
                    options: [
                      { label: "0.4.1", description: "Only fixes" },
                      { label: "0.5.0", description: "The greeting has changed" },
                    ],
                  },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
});

/** Takes a picture in which the folder of this run has the name of anyone's. */
async function picture(page: Page, project: string, name: string): Promise<void> {
  await page.evaluate((folder) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { currentNode } = texts;
      currentNode.nodeValue =
        currentNode.nodeValue?.replaceAll(folder, "/home/user/projects/greeter") ?? null;
    }
  }, project);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(docs, `${name}.png`), animations: "disabled" });
}

for (const [locale, suffix, allow] of [
  ["en", "", /^Allow/],
  ["zh-CN", ".zh-CN", /^允许/],
] as const) {
  test.describe(locale, () => {
    test.use({ locale, viewport: { width: 1360, height: 850 }, deviceScaleFactor: 2 });
    test("pictures", async ({ page, product }) => {
      const file = join(product.project, "greet.rs");
      writeFileSync(file, source);
      const link = await product.start(script(file));
      const chinese = locale === "zh-CN";
      await page.goto(link);
      const begin = async (prompt: string) => {
        await page.goto(new URL("/#/new", link).href);
        await page.getByRole("textbox", { name: chinese ? "任务" : "Task" }).fill(prompt);
        await page.keyboard.press("Enter");
      };
      await begin("Prepare the release");
      await expect(page.getByRole("form")).toBeVisible();
      await begin("Make the greeting friendlier");
      await page.getByRole("button", { name: allow }).click();
      await expect(page.getByRole("region", { name: chinese ? "结果" : "Result" })).toBeVisible();
      const message = page.getByRole("textbox", { name: chinese ? "消息" : "Message" });
      await message.fill("Now run the tests");
      await message.press("Enter");
      await expect(page.getByRole("button", { name: allow })).toBeInViewport();
      await picture(page, product.project, `workbench${suffix}`);
      await page.goto(new URL("/#/inbox", link).href);
      await expect(page.getByRole("form")).toBeVisible();
      await page.emulateMedia({ colorScheme: "dark" });
      await picture(page, product.project, `inbox${suffix}`);
    });
  });
}

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 780 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true });
  test("picture", async ({ page, product }) => {
    const file = join(product.project, "greet.rs");
    writeFileSync(file, source);
    const link = await product.start(script(file));
    await startSession(page, link, "Make the greeting friendlier");
    await page.getByRole("button", { name: /^Allow/ }).click();
    await expect(page.getByRole("region", { name: "Result" })).toBeVisible();
    await say(page, "Now run the tests");
    await expect(page.getByRole("button", { name: /^Allow/ })).toBeInViewport();
    await picture(page, product.project, "phone");
  });
});
