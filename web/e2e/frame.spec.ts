/** The page around the conversation: lists, drafts, queues, connections. */
import { expect, say, startSession, test } from "./product";

const reply = (text: string) => ({ parts: [{ type: "text" as const, text }] });
const waiting = (gate: string) => ({
  parts: [
    { type: "text" as const, text: "Working on it. " },
    { type: "gate" as const, name: gate },
    { type: "text" as const, text: "Finished." },
  ],
});

/** The smallest image. */
const DOT =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("an empty task is refused under the field", async ({ page, product }) => {
  await page.goto(await product.start({ rules: [] }));
  const task = page.getByRole("textbox", { name: "Task" });
  await task.press("Enter");
  await expect(page.getByRole("alert")).toHaveText("Please describe the task.");
  await expect(task).toHaveAttribute("aria-invalid", "true");
  await task.fill("x");
  await expect(page.getByRole("alert")).toBeHidden();
});

test("a folder outside the roots is refused, and the task is kept", async ({ page, product }) => {
  await page.goto(await product.start({ rules: [] }));
  await page.getByRole("combobox", { name: "Working directory" }).fill("/etc");
  await page.getByRole("textbox", { name: "Task" }).fill("look around");
  await page.getByRole("textbox", { name: "Task" }).press("Enter");
  await expect(page.getByRole("alert")).toContainText("folder");
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue("look around");
  await expect(page.getByRole("navigation").getByText("No sessions yet.")).toBeVisible();
});

test("a folder is picked by walking there", async ({ page, product }) => {
  await page.goto(await product.start({ rules: [{ contains: "hi", replies: [reply("Hello.")] }] }));
  await page.getByRole("button", { name: "Browse folders" }).click();
  const picker = page.getByRole("dialog", { name: "Choose a folder" });
  await picker.getByRole("button", { name: "Up one level" }).click();
  await picker.getByRole("button", { name: "project" }).click();
  await expect(picker.getByText(product.project, { exact: true })).toBeVisible();
  await picker.getByRole("button", { name: "Use this folder" }).click();
  await expect(page.getByRole("combobox", { name: "Working directory" })).toHaveValue(product.project);
});

test("keys: Enter sends, Ctrl+Enter and Shift+Enter break the line, Escape stops", async ({
  page,
  product,
}) => {
  const link = await product.start({ rules: [{ contains: "line one", replies: [waiting("never")] }] });
  await page.goto(link);
  const task = page.getByRole("textbox", { name: "Task" });
  await task.pressSequentially("line one");
  await task.press("Control+Enter");
  await task.pressSequentially("line two");
  await task.press("Shift+Enter");
  await task.pressSequentially("line three");
  await expect(task).toHaveValue("line one\nline two\nline three");
  await task.press("Enter");
  await product.model?.reached("never");
  await page.getByRole("textbox", { name: "Message" }).press("Escape");
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Stopped");
});

test("a prompt sent meanwhile is queued in sight, then sent", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      { contains: "start", replies: [waiting("go")] },
      { contains: "afterwards", replies: [reply("And that too.")] },
    ],
  });
  await startSession(page, link, "start");
  await product.model?.reached("go");
  await say(page, "afterwards this");
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeVisible();
  await expect(page.getByText("afterwards this")).toBeVisible();
  await page.reload();
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeVisible();
  await product.model?.open("go");
  await expect(page.getByText("And that too.")).toBeVisible();
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeHidden();
});

test("a prompt that overtakes what the page has asked for is sent once, and does not come back", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "start", replies: [waiting("go")] },
      { contains: "afterwards", replies: [reply("And that too.")] },
    ],
  });
  // What opens the session is on its way to the page for as long as the user needs to write the next prompt.
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    const server = socket.connectToServer();
    let held: (string | Buffer)[] | undefined;
    let prompted = false;
    server.onMessage((frame) => {
      if (!prompted && String(frame).startsWith('{"type":"session.history"')) held ??= [];
      if (held) held.push(frame);
      else socket.send(frame);
    });
    socket.onMessage((frame) => {
      server.send(frame);
      if (!String(frame).startsWith('{"type":"session.continue"')) return;
      prompted = true;
      for (const each of held ?? []) socket.send(each);
      held = undefined;
    });
  });
  await startSession(page, link, "start");
  await product.model?.reached("go");
  await say(page, "afterwards this");
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeVisible();
  await product.model?.open("go");
  await expect(page.getByText("And that too.")).toBeVisible();
  await expect(page.getByRole("log").getByText("afterwards this")).toHaveCount(1);
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("");
});

test("drafts stay with their session", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "a", replies: [reply("Done.")] }] });
  await startSession(page, link, "alpha task");
  await expect(page.getByText("Done.")).toBeVisible();
  await page.getByRole("textbox", { name: "Message" }).fill("not finished yet");
  await page.getByRole("navigation").getByRole("link", { name: "New session" }).click();
  await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue("");
  await page.getByRole("textbox", { name: "Task" }).fill("another idea");
  await page
    .getByRole("navigation")
    .getByRole("link", { name: /alpha task/ })
    .click();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("not finished yet");
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("not finished yet");

  // The tab leads to the draft. 'New session' begins anew, and what was typed can be had back.
  const task = page.getByRole("textbox", { name: "Task" });
  const anew = page.getByRole("navigation").getByRole("link", { name: "New session" });
  await page.getByRole("list", { name: "Open sessions" }).getByRole("link", { name: "New task" }).click();
  await expect(task).toHaveValue("another idea");
  await page.getByRole("checkbox", { name: /^Continue/ }).check();
  await anew.click();
  await expect(task).toHaveValue("");
  await expect(page.getByRole("checkbox", { name: /^Continue/ })).not.toBeChecked();
  await task.press("ArrowUp");
  await expect(task).toHaveValue("another idea");
  await task.fill("a third one");
  await anew.click();
  await expect(task).toHaveValue("");
  await page.getByRole("button", { name: "Undo" }).first().click();
  await expect(task).toHaveValue("a third one");
});

test("a deleted session can be brought back, and is gone when it is not", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "short", replies: [reply("Done.")] }] });
  await startSession(page, link, "short task");
  await expect(page.getByText("Done.")).toBeVisible();
  const entry = page.getByRole("navigation").getByRole("link", { name: /short task/ });
  const remove = async () => {
    await page.getByRole("navigation").getByRole("button", { name: "Actions for short task" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
  };
  await remove();
  await expect(entry).toBeHidden();
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(entry).toBeVisible();

  await remove();
  await expect(entry).toBeHidden();
  // Leaving the page does not leave the deletion behind.
  await page.reload();
  await expect(page.getByText("No sessions yet.")).toBeVisible();
});

test("deleting a running session stops its agent at once, and undoing keeps what is queued in sight", async ({
  page,
  product,
}) => {
  const link = await product.start({ rules: [{ contains: "start", replies: [waiting("go")] }] });
  await startSession(page, link, "start it");
  await product.model?.reached("go");
  await say(page, "later");
  await expect(page.getByText("Queued. Sent when the current turn ends")).toBeVisible();
  await page.getByRole("navigation").getByRole("button", { name: "Actions for start it" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Stop and delete" }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await page
    .getByRole("navigation")
    .getByRole("link", { name: /start it/ })
    .click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Stopped");
  await expect(page.getByText("Kept when you stopped. Sent after your next message")).toBeVisible();
});

test("the command that goes on in a terminal names the agent's own session", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "short", replies: [reply("Done.")] }] });
  await startSession(page, link, "short task");
  await expect(page.getByText("Done.")).toBeVisible();
  await page.getByRole("main").getByRole("button", { name: "Actions for short task" }).click();
  await page.getByRole("menuitem", { name: "Continue in terminal" }).click();
  const session = page.url().split("/s/")[1];
  await expect(page.getByRole("dialog")).toContainText(`cd ${product.project} && claude --resume ${session}`);
});

test("a broken connection is shown, and nothing is lost or doubled over it", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      {
        contains: "keep talking",
        replies: [
          {
            parts: [
              { type: "text", text: "Before. " },
              { type: "gate", name: "cut" },
              { type: "text", text: "During. " },
              { type: "gate", name: "back" },
              { type: "text", text: "After." },
            ],
          },
        ],
      },
    ],
  });
  let online = true;
  const open: { close(): Promise<void> }[] = [];
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    if (!online) {
      void socket.close();
      return;
    }
    socket.connectToServer();
    open.push(socket);
  });
  await startSession(page, link, "keep talking");
  await product.model?.reached("cut");
  await expect(page.getByText("Before.")).toBeVisible();

  online = false;
  await Promise.all(open.map((socket) => socket.close()));
  await expect(page.getByText("Offline, reconnecting…")).toBeVisible();
  await product.model?.open("cut");
  await product.model?.reached("back");
  await expect(page.getByText("During.")).toBeHidden();
  await expect(page.getByRole("button", { name: "Try now" })).toBeVisible();

  // From here on it finds back by itself, sooner or later.
  online = true;
  await expect(page.getByText("Before. During.", { exact: true })).toBeVisible();
  await product.model?.open("back");
  await expect(page.getByText("Before. During. After.", { exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  await expect(page.getByRole("log").getByText("keep talking")).toHaveCount(1);
});

test("prompts that the connection swallowed are sent again, in order and with their images", async ({
  page,
  product,
}) => {
  const link = await product.start({
    rules: [
      { contains: "short", replies: [reply("Done.")] },
      { contains: "do not lose", replies: [reply("Kept.")] },
      { contains: "nor that", replies: [reply("Kept as well.")] },
    ],
  });
  let swallow = false;
  const open: { close(): Promise<void> }[] = [];
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    const server = socket.connectToServer();
    open.push(socket);
    socket.onMessage((frame) => {
      if (!swallow || !String(frame).includes("session.continue")) server.send(frame);
    });
  });
  await startSession(page, link, "short task");
  await expect(page.getByText("Done.")).toBeVisible();

  swallow = true;
  const image = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(DOT, "base64") };
  await page.getByLabel("Add images").and(page.locator("input")).setInputFiles(image);
  await expect(page.getByRole("img", { name: "dot.png" })).toBeVisible();
  await say(page, "do not lose this");
  await say(page, "nor that");
  // Nothing acknowledges them, so this is how it stays until the connection breaks.
  await expect(page.getByText("Sending…")).toHaveCount(2);
  swallow = false;
  await Promise.all(open.map((socket) => socket.close()));
  await expect(page.getByText("Kept as well.")).toBeVisible();
  await expect(page.getByText("Sending…")).toHaveCount(0);
  await expect(page.getByRole("log").getByText("do not lose this")).toHaveCount(1);
  await expect(page.getByRole("log").getByRole("img", { name: "dot.png" })).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("");
});

test("a prompt whose acknowledgement was lost is sent again, and runs once", async ({ page, product }) => {
  const link = await product.start({
    rules: [
      { contains: "short", replies: [reply("Done.")] },
      { contains: "exactly once", replies: [reply("I was asked."), reply("I was asked again.")] },
    ],
  });
  let deaf = false;
  const open: { close(): Promise<void> }[] = [];
  const sent: { commandId: string; payload: { promptId: string } }[] = [];
  await page.routeWebSocket(/\/ws\/events/, (socket) => {
    const server = socket.connectToServer();
    open.push(socket);
    socket.onMessage((frame) => {
      const event = JSON.parse(String(frame));
      if (event.type === "session.continue") sent.push(event);
      server.send(frame);
    });
    server.onMessage((frame) => {
      if (!deaf) socket.send(frame);
    });
  });
  await startSession(page, link, "short task");
  await expect(page.getByText("Done.")).toBeVisible();

  deaf = true;
  await say(page, "exactly once please");
  await expect.poll(async () => JSON.stringify(await product.model?.requests())).toContain("exactly once");
  await expect(page.getByText("Sending…")).toBeVisible();
  deaf = false;
  await Promise.all(open.map((socket) => socket.close()));
  await expect(page.getByText("I was asked.", { exact: true })).toBeVisible();
  await expect(page.getByText("Sending…")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Stop" })).toBeHidden();
  await expect(page.getByRole("log").getByText("exactly once please")).toHaveCount(1);
  await expect(page.getByText("I was asked again.")).toHaveCount(0);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toEqual(sent[0]);
});

test("a session begun elsewhere appears by itself", async ({ page, product, context }) => {
  const link = await product.start({ rules: [{ contains: "elsewhere", replies: [reply("Done.")] }] });
  await page.goto(link);
  const other = await context.newPage();
  // Someone who is done before the page has its connection.
  let connect: (() => void) | undefined;
  const asked = new Promise<void>((resolve) => {
    connect = resolve;
  });
  await other.routeWebSocket(/\/ws\/events/, async (socket) => {
    await asked;
    socket.connectToServer();
  });
  await startSession(other, new URL("/#/new", link).href, "begun elsewhere");
  connect?.();
  await expect(other).toHaveURL(/#\/s\//);
  await expect(page.getByRole("navigation").getByRole("link", { name: /begun elsewhere/ })).toBeVisible();
});

test("raw messages are one click away", async ({ page, product }) => {
  const link = await product.start({ rules: [{ contains: "short", replies: [reply("A short answer.")] }] });
  await startSession(page, link, "short task");
  // Until then the message is in pieces.
  await expect(page.getByRole("region", { name: "Result" })).toContainText("Done");
  const answer = page.locator("[data-index]").filter({ hasText: "A short answer." });
  await answer.hover();
  await answer.getByRole("button", { name: "Show raw message" }).click();
  await expect(page.getByRole("dialog", { name: "Raw message" })).toContainText('"type": "assistant"');
});

test("a turn that fails says so once, and can be tried again", async ({ page, product }) => {
  const link = await product.start({
    // As often as the agent tries by itself.
    rules: [
      { contains: "will fail", replies: Array.from({ length: 8 }, () => ({ error: { status: 400 } })) },
    ],
  });
  await startSession(page, link, "this will fail");
  const result = page.getByRole("region", { name: "Result" });
  await expect(result).toContainText("Failed");
  await expect(page.getByRole("log").getByText(/API Error/)).toHaveCount(1);
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(result).toHaveCount(2);
});
