/** The limits of an account are in view, and what is said can be written down. */
import { expect, startSession, test } from "./product";

const inHours = (hours: number) => String(Math.floor(Date.now() / 1000) + hours * 3600);

test("the limits that the model's service reports are in view, and stay so", async ({ page, product }) => {
  product.signedIn = "subscription";
  const link = await product.start({
    headers: {
      "anthropic-ratelimit-unified-status": "allowed",
      "anthropic-ratelimit-unified-representative-claim": "five_hour",
      "anthropic-ratelimit-unified-reset": inHours(2),
      "anthropic-ratelimit-unified-5h-utilization": "0.83",
      "anthropic-ratelimit-unified-5h-reset": inHours(2),
      "anthropic-ratelimit-unified-7d-utilization": "0.25",
      "anthropic-ratelimit-unified-7d-reset": inHours(50),
    },
    rules: [{ contains: "hello", replies: [{ parts: [{ type: "text", text: "Hi." }] }] }],
  });
  await startSession(page, link, "hello");
  await expect(page.getByText("Hi.", { exact: true })).toBeVisible();
  const bar = page.getByRole("group", { name: "Statistics" });
  await expect(bar).toContainText("5-hour limit: 83% used");
  await expect(bar).toContainText("Weekly limit: 25% used");
  await expect(bar.getByText("5-hour limit", { exact: false })).toHaveAttribute("title", /^Resets /);

  await page.goto(`${new URL(link).origin}/#/history/usage`);
  await page.reload();
  const limits = page.getByRole("region", { name: "Account limits" });
  await expect(limits.getByRole("listitem").first()).toContainText("17% left");
  await expect(limits.getByRole("listitem").last()).toContainText("75% left");
});

test("what is said is written into the field, where the browser can listen", async ({ page, product }) => {
  await page.addInitScript(() => {
    class Recognition {
      onresult?: (event: unknown) => void;
      onend?: () => void;
      start() {
        Object.assign(window, { say: (words: string) => this.hear(words) });
      }
      stop() {
        this.onend?.();
      }
      hear(words: string) {
        this.onresult?.({ resultIndex: 0, results: [{ isFinal: true, 0: { transcript: words } }] });
      }
    }
    Object.assign(window, { SpeechRecognition: Recognition });
  });
  const link = await product.start({
    rules: [{ contains: "fix the bug", replies: [{ parts: [{ type: "text", text: "Fixed." }] }] }],
  });
  await page.goto(link);
  const say = (words: string) =>
    page.evaluate((heard) => (window as unknown as { say: (words: string) => void }).say(heard), words);
  await page.getByRole("button", { name: "Dictate" }).click();
  await say("fix");
  await say("the bug");
  const task = page.getByRole("textbox", { name: "Task" });
  await expect(task).toHaveValue("fix the bug");
  await page.getByRole("button", { name: "Stop dictating" }).click();
  await expect(page.getByRole("button", { name: "Dictate" })).toHaveAttribute("aria-pressed", "false");
  await page.getByRole("button", { name: "Start session" }).click();
  await expect(page.getByText("Fixed.", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Dictate" }).click();
  await say("thank you");
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("thank you");
});
