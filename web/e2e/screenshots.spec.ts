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

/** The same story in both languages. */
const stories = {
  en: {
    change: "Make the greeting friendlier",
    test: "Now run the tests",
    release: "Prepare the release",
    thought: "First see what is there, then change as little as possible.",
    look: "I'll look at the greeting first.",
    done: "The greeting is friendlier now, and ignores stray spaces.\n\n| case | before | now |\n| --- | --- | --- |\n| `world` | Hello world | Good to see you, world! |\n| ` world ` | Hello  world  | Good to see you, world! |\n\nNext I would run the tests.",
    run: "Run all tests",
    question: "Which version should this be?",
    header: "Version",
    fixes: "Only fixes",
    changed: "The greeting has changed",
  },
  "zh-CN": {
    change: "让问候语更友好",
    test: "现在运行测试",
    release: "准备发布",
    thought: "先看看现有代码，再做最小的改动。",
    look: "我先看一下问候语。",
    done: "问候语现在更友好了，也会忽略多余的空格。\n\n| 情况 | 之前 | 现在 |\n| --- | --- | --- |\n| `world` | Hello world | Good to see you, world! |\n| ` world ` | Hello  world  | Good to see you, world! |\n\n接下来可以运行测试。",
    run: "运行全部测试",
    question: "这次应该是哪个版本？",
    header: "版本",
    fixes: "只有修复",
    changed: "问候语有变化",
  },
} as const;
type Story = (typeof stories)[keyof typeof stories];

const script = (file: string, story: Story) => ({
  rules: [
    {
      contains: story.change,
      replies: [
        {
          parts: [
            {
              type: "thinking" as const,
              thinking: story.thought,
            },
            { type: "text" as const, text: story.look },
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
              text: story.done,
            },
          ],
        },
      ],
    },
    {
      contains: story.test,
      replies: [
        {
          parts: [
            {
              type: "tool_use" as const,
              name: "Bash",
              input: { command: "cargo test --workspace", description: story.run },
            },
          ],
        },
      ],
    },
    {
      contains: story.release,
      replies: [
        {
          parts: [
            {
              type: "tool_use" as const,
              name: "AskUserQuestion",
              input: {
                questions: [
                  {
                    question: story.question,
                    header: story.header,
                    multiSelect: false,
                    options: [
                      { label: "0.4.1", description: story.fixes },
                      { label: "0.5.0", description: story.changed },
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
  // The commands in their colours, which come a moment later.
  await expect(page.locator("code span[style]").first()).toBeVisible();
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
      const story = stories[locale];
      const link = await product.start(script(file, story));
      const chinese = locale === "zh-CN";
      await page.goto(link);
      const begin = async (prompt: string) => {
        await page.goto(new URL("/#/new", link).href);
        await page.getByRole("textbox", { name: chinese ? "任务" : "Task" }).fill(prompt);
        await page.keyboard.press("Enter");
      };
      await begin(story.release);
      await expect(page.getByRole("form")).toBeVisible();
      await begin(story.change);
      await page.getByRole("button", { name: allow }).click();
      await expect(page.getByRole("region", { name: chinese ? "结果" : "Result" })).toBeVisible();
      const message = page.getByRole("textbox", { name: chinese ? "消息" : "Message" });
      await message.fill(story.test);
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
    const link = await product.start(script(file, stories.en));
    await startSession(page, link, stories.en.change);
    await page.getByRole("button", { name: /^Allow/ }).click();
    await expect(page.getByRole("region", { name: "Result" })).toBeVisible();
    await say(page, stories.en.test);
    await expect(page.getByRole("button", { name: /^Allow/ })).toBeInViewport();
    await picture(page, product.project, "phone");
  });
});
