/** States that a page can be in: nobody looks, nobody answers, nobody is signed in, nothing is reachable. */
import type { Page } from "@playwright/test";
import { expect, say, startSession, test, tool } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const command = (text: string) => ({
  parts: [{ type: "tool_use" as const, name: "Bash", input: { command: text, description: "Try it" } }],
});

/** What the browser would have shown and played. */
async function recordAttention(page: Page): Promise<() => Promise<{ shown: string[]; notes: number }>> {
  await page.context().grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const attention = { shown: [] as string[], notes: 0 };
    Object.assign(window, { attention });
    const note = (title: string, options?: NotificationOptions) =>
      attention.shown.push(`${title}: ${options?.body}`);
    window.Notification = class extends window.Notification {
      constructor(title: string, options?: NotificationOptions) {
        super(title, options);
        note(title, options);
      }
    };
    const { showNotification } = ServiceWorkerRegistration.prototype;
    ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
      note(title, options);
      return showNotification.call(this, title, options);
    };
    const { start } = OscillatorNode.prototype;
    OscillatorNode.prototype.start = function (when) {
      attention.notes += 1;
      start.call(this, when);
    };
    // Someone who looks elsewhere.
    document.hasFocus = () => false;
  });
  return () =>
    page.evaluate(() => (window as unknown as { attention: { shown: string[]; notes: number } }).attention);
}

test("who looks elsewhere is told by the title, a notification and, if wanted, a sound", async ({
  page,
  product,
}) => {
  const attention = await recordAttention(page);
  const link = await product.start({
    rules: [
      { contains: "quiet", replies: [command("touch one"), reply("Done.")] },
      { contains: "loud", replies: [command("touch two"), reply("Done again.")] },
    ],
  });
  await page.goto(link);
  // Nothing is shown or played unless the user has asked for it.
  await startSession(page, new URL("/#/new", link).href, "quiet please");
  const allow = page.getByRole("button", { name: /^Allow/ });
  await expect(allow).toBeVisible();
  await expect(page).toHaveTitle(/^\(1\) /);
  expect(await attention()).toEqual({ shown: [], notes: 0 });
  await allow.click();
  await expect(page.getByText("Done.")).toBeVisible();
  await expect(page).toHaveTitle(/^quiet please/);
  // The end of a turn is an occasion, too.
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();

  await page.getByRole("button", { name: "Preferences" }).click();
  await page.getByRole("menuitemcheckbox", { name: "Notify me" }).click();
  await expect(page.getByRole("menuitemcheckbox", { name: "Notify me" })).toBeChecked();
  // It is heard at once.
  await page.getByRole("menuitemcheckbox", { name: "Sound" }).click();
  await expect.poll(async () => (await attention()).notes).toBeGreaterThan(0);
  await page.keyboard.press("Escape");
  const { notes } = await attention();
  await say(page, "loud now");
  await expect(allow).toBeVisible();
  await expect
    .poll(async () => (await attention()).shown)
    .toEqual([expect.stringMatching(/^quiet please: /)]);
  await expect.poll(async () => (await attention()).notes).toBeGreaterThan(notes);
  // The wish is kept.
  await page.reload();
  await page.getByRole("button", { name: "Preferences" }).click();
  await expect(page.getByRole("menuitemcheckbox", { name: "Sound" })).toBeChecked();
});

test("the installed page opens without a server, says so, and finds back", async ({ page, product }) => {
  const script = { rules: [{ contains: "hello", replies: [reply("Hello to you.")] }] };
  const link = await product.start(script);
  await startSession(page, link, "hello there");
  await expect(page.getByText("Hello to you.")).toBeVisible();
  const manifest = await page.evaluate(async () => {
    const address = document.querySelector<HTMLLinkElement>("link[rel=manifest]")?.href ?? "";
    return (await fetch(address)).json() as Promise<{ display: string; icons: unknown[] }>;
  });
  expect(manifest).toMatchObject({ display: "standalone" });
  await page.evaluate(() => navigator.serviceWorker.ready);
  // Once more under the worker's eyes, which keeps what passes.
  await page.reload();
  await expect(page.getByText("Hello to you.")).toBeVisible();
  const keptFiles = () =>
    page.evaluate(async () => {
      const cache = await caches.open("tiller-shell-1");
      return (await cache.keys()).map((request) => new URL(request.url).pathname);
    });
  await expect.poll(keptFiles).toContain("/");
  // Nothing that sessions say is ever kept.
  expect((await keptFiles()).filter((path) => path !== "/" && !path.startsWith("/assets/"))).toEqual([]);

  await product.stop();
  await page.reload();
  await expect(page.getByText("Offline, reconnecting…")).toBeVisible();
  await expect(page.getByRole("navigation")).toBeVisible();

  // Files of an earlier release are thrown away when a new page comes.
  await page.evaluate(async () => {
    const cache = await caches.open("tiller-shell-1");
    await cache.put("/", new Response("<p>an earlier release</p>"));
    await cache.put("/assets/earlier.js", new Response(""));
  });
  await page.goto(new URL("/", await product.start(script, new URL(link).port)).href);
  await expect(page.getByRole("navigation").getByRole("link", { name: /hello there/ })).toBeVisible();
  await expect.poll(keptFiles).not.toContain("/assets/earlier.js");
});

test("an agent that is not signed in says how to sign in", async ({ page, product }) => {
  product.signedIn = false;
  const link = await product.start({ rules: [] });
  await startSession(page, link, "anything");
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Failed");
  await page.getByRole("link", { name: /can sign in/ }).click();
  const main = page.getByRole("main");
  await expect(main.getByRole("heading", { name: "Claude status" })).toBeVisible();
  await expect(main.getByText("claude /login")).toBeVisible();
});

test("a reached limit is said where it matters, and so is a model that does not answer", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "busy", replies: [{ error: { status: 529 } }, reply("At last.")] },
      { contains: "limit", replies: [reply("Answered.")] },
    ],
  });
  // The model's own service tells the agent of limits; here the page is told in its place.
  let tell: ((message: object) => void) | undefined;
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    const server = socket.connectToServer();
    let session = "";
    let last = 0;
    server.onMessage((frame) => {
      const event = JSON.parse(String(frame));
      if (event.payload?.seq) ({ seq: last, sessionId: session } = event.payload);
      socket.send(frame);
    });
    tell = (message) =>
      socket.send(
        JSON.stringify({ type: "stream.message", payload: { sessionId: session, seq: last + 1, message } }),
      );
  });
  await startSession(page, link, "busy model");
  await expect(page.getByText("At last.")).toBeVisible();
  await expect(page.getByText(/overloaded.*Tried again/)).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");

  const resetsAt = Date.UTC(2030, 0, 2, 15, 30) / 1000;
  tell?.({ type: "rate_limit_event", rate_limit_info: { status: "rejected", resetsAt } });
  await expect(page.getByRole("alert")).toContainText(/usage limit has been reached.*Jan [23]/);
});

test("a subagent's conversation is inside the call that started it", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "You count files",
        replies: [
          command("ls"),
          {
            parts: [
              { type: "gate" as const, name: "counted" },
              { type: "text" as const, text: "There are **two** files." },
            ],
          },
        ],
      },
      {
        contains: "send someone",
        replies: [
          {
            parts: [
              {
                type: "tool_use",
                name: "Task",
                input: {
                  description: "Count the files",
                  prompt: "You count files",
                  subagent_type: "general-purpose",
                },
              },
            ],
          },
          reply("The other one said: two."),
        ],
      },
    ],
  });
  await startSession(page, link, "send someone");
  await product.model?.reached("counted");
  const panel = page.getByRole("complementary", { name: "Session details" });
  await expect(panel.getByText("Count the files")).toBeVisible();
  await product.model?.open("counted");
  await expect(page.getByText("The other one said: two.")).toBeVisible();
  const card = page.getByRole("article", { name: "Tool Subagent", exact: true });
  await card.getByRole("button", { name: /Count the files/ }).click();
  const nested = card.getByRole("group", { name: "Subagent" });
  await expect(card.getByText("You count files")).toBeVisible();
  await expect(card.getByText("Async agent launched")).toBeHidden();
  await expect(tool(page, "Bash")).toHaveAttribute("data-state", "success");
  await expect(nested.getByText("There are two files.")).toBeVisible();
  // The panel lists what runs.
  await expect(panel.getByText("Count the files")).toBeHidden();
});

test("Ctrl+L clears the view, its figures and the session's id; all of it can be shown again", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "before", replies: [reply("Said before.")] },
      { contains: "after", replies: [reply("Said after.")] },
    ],
  });
  await startSession(page, link, "before");
  const list = page.getByRole("log", { name: "Conversation" });
  const figures = page.getByRole("group", { name: "Statistics" });
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  await expect(figures).toContainText("1 turn");
  await expect(figures).toContainText(new URL(page.url()).hash.slice(4, 12));
  const panel = page.getByRole("complementary", { name: "Session details" });
  await expect(panel).toContainText("$");
  await page.getByRole("textbox", { name: "Message" }).press("Control+l");
  await expect(list.getByText("Said before.")).toBeHidden();
  await expect(figures).toBeHidden();
  await expect(panel).not.toContainText("$");
  await expect(panel).toContainText("Known after the first answer.");
  const bar = page.getByRole("group", { name: "Session information" });
  const first = new URL(page.url()).hash;
  await expect(bar).toContainText("New session");
  await expect(bar.getByRole("button", { name: "Copy session id" })).toBeHidden();
  // What is said now begins another one, in the same folder.
  await say(page, "after");
  await expect(list.getByText("Said after.")).toBeVisible();
  await expect(page).not.toHaveURL(new RegExp(first));
  await expect(figures).toContainText("1 turn");
  await expect(bar).toContainText(new URL(page.url()).hash.slice(4, 12));
  await expect(bar.getByTitle(product.project)).toBeAttached();

  // Who wants to go on with the old one shows it again.
  await page.goto(new URL(`/${first}`, page.url()).href);
  await expect(list.getByText("Said before.")).toBeVisible();
  const field = page.getByRole("textbox", { name: "Message" });
  await expect(field).toHaveValue("");
  await field.press("Control+l");
  await expect(bar).toContainText("New session");
  await page.getByRole("button", { name: "Show earlier messages" }).click();
  await expect(bar).toContainText(first.slice(4, 12));
  await expect(panel).toContainText("$");
  await say(page, "after all");
  await expect(figures).toContainText("2 turns");
  await expect(page).toHaveURL(new RegExp(first));
});

test("'continue' goes on with the newest conversation of a folder, from a terminal too", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "in the terminal", replies: [reply("Terminal answer.")] },
      { contains: "go on", replies: [reply("You said: {{prompts}}")] },
    ],
  });
  const conversation = await product.inTerminal("in the terminal, remember 42");
  await page.goto(link);
  const box = page.getByRole("checkbox", { name: /Continue.*in the terminal/ });
  await box.check();
  const task = page.getByRole("textbox", { name: "Task" });
  await task.fill("go on");
  await task.press("Enter");
  await expect(page.getByText(/You said: .*remember 42.*go on/)).toBeVisible();
  await expect(page).toHaveURL(new RegExp(conversation));

  // From here on it is a session of ours.
  await page.keyboard.press("Alt+n");
  await page.getByRole("checkbox", { name: /^Continue/ }).check();
  await task.fill("go on once more");
  await task.press("Enter");
  await expect(page).toHaveURL(new RegExp(conversation));
  await expect(page.getByText(/You said: .*go on.*go on once more/)).toBeVisible();
});
