/**
 * How the page does under load, measured in the browser. The server's side of the socket is played here, so that nothing
 * but the page is measured. `TILLER_SPEED_SECONDS` sets how long words are streamed (a minute is what counts; the test
 * run takes a few seconds of it), `TILLER_SPEED_RATE` how many a second in each session. What is counted, and how much work one
 * thing takes beside another, has to be right on every machine; times are only told.
 */
import { get } from "node:http";
import type { CDPSession, Page } from "@playwright/test";
import { expect, test } from "./product";
import { type StandIn, standIn } from "./socket";

const SECONDS = Number(process.env.TILLER_SPEED_SECONDS ?? 6);
const RATE = Number(process.env.TILLER_SPEED_RATE ?? 200);
/** An answer has so many words; the next one follows. */
const ANSWER = 400;

/** Sessions, by how many messages they have. */
const LONG = { id: "5e551000-0000-4000-8000-000000000000", length: 10_000 };
const SHORT = { id: "5e551000-0000-4000-8000-000000000001", length: 100 };
const OTHER = { id: "5e551000-0000-4000-8000-000000000002", length: 100 };
const sessions = [LONG, SHORT, OTHER];
type Played = (typeof sessions)[number];

const entry = ({ id, length }: Played) => ({
  id,
  title: `A session of ${length} messages`,
  status: "running",
  cwd: "/work",
  createdAt: 1,
  updatedAt: 1,
  permissionMode: "default",
  approval: "ask",
  settings: { permissionMode: "default", approval: "ask" },
  archived: false,
  pending: 0,
  queue: [],
  agent: { state: "running" },
  lastSeq: length,
  summary: {
    turns: 0,
    workingMs: 0,
    tokensIn: 0,
    tokensOut: 0,
    costUsd: 0,
    filesChanged: [],
    todos: [],
    tasks: [],
    mcp: {},
    lastActivity: 1,
  },
});

/** A conversation as it is: prompts, answers with Markdown, commands with output. Numbered from its end, so that all end alike. */
function message({ id, length }: Played, seq: number): { type: string; payload: Record<string, unknown> } {
  const payload = { sessionId: id, seq };
  const number = LONG.length - length + seq;
  if (number % 10 === 1)
    return {
      type: "stream.user_prompt",
      payload: { ...payload, prompt: `Prompt ${number}`, promptId: `u${number}`, uuid: `u${number}` },
    };
  const content =
    number % 3 === 0
      ? {
          type: "tool_use",
          id: `t${number}`,
          name: "Bash",
          input: { command: `make check-${number}`, description: "Check" },
        }
      : {
          type: "text",
          text: `Answer **${number}** with a list:\n\n- one\n- two\n\n\`\`\`rust\nfn main() {}\n\`\`\``,
        };
  return {
    type: "stream.message",
    payload: {
      ...payload,
      message: { type: "assistant", message: { id: `m${number}`, content: [content] } },
    },
  };
}

const at = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0;

/** For whoever reads the run's output. */
function tell(figures: object): void {
  const description = JSON.stringify(figures);
  test.info().annotations.push({ type: "speed", description });
  process.stdout.write(`speed: ${description}\n`);
}

// Recording takes more time than what it records.
test.use({ trace: "off" });

/** Reads the seconds that the page's thread has worked, whatever else the machine did meanwhile. */
async function processorTime(page: Page): Promise<() => Promise<number>> {
  const protocol = await page.context().newCDPSession(page);
  await protocol.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await protocol.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0;
  };
}

/** Megabytes in use once everything that is not needed has been collected. */
async function heap(protocol: CDPSession): Promise<number> {
  await protocol.send("HeapProfiler.collectGarbage");
  return Math.round((await protocol.send("Runtime.getHeapUsage")).usedSize / 100_000) / 10;
}

interface Asked {
  type: string;
  commandId: string;
  payload: { sessionId: string; afterSeq: number; beforeSeq?: number; limit: number };
}

/** How many messages the page has been told. */
let told = 0;

/** What the server of these sessions answers. */
function* answer({ type, commandId, payload }: Asked): Generator<object> {
  if (type === "session.list") yield { type, commandId, payload: { sessions: sessions.map(entry) } };
  const played = sessions.find(({ id }) => id === payload.sessionId);
  if (!played) return;
  if (type === "session.subscribe")
    for (let seq = payload.afterSeq + 1; seq <= played.length; seq += 1, told += 1)
      yield message(played, seq);
  if (type !== "session.history") return;
  const last = Math.min(played.length, (payload.beforeSeq ?? played.length + 1) - 1);
  const length = Math.min(payload.limit, last);
  const seqs = Array.from({ length }, (_, index) => index + 1 + last - length);
  const events = seqs.map((seq) => message(played, seq));
  told += seqs.length;
  yield {
    type,
    commandId,
    payload: {
      sessionId: played.id,
      status: "running",
      messages: events.map((event) =>
        event.type === "stream.message"
          ? event.payload.message
          : { type: "user_prompt", prompt: event.payload.prompt, promptId: event.payload.promptId },
      ),
      seqs,
      kinds: events.map((event) => (event.type === "stream.message" ? "message" : "user_prompt")),
      lastSeq: played.length,
      pending: [],
      queue: [],
      queueItems: [],
    },
  };
}

/** The same words as the last hundred messages, as a page that does nothing. */
function plainPage(): string {
  const parts = Array.from({ length: SHORT.length }, (_, index) => {
    const { type, payload } = message(SHORT, index + 1);
    if (type === "stream.user_prompt") return `<p>${String(payload.prompt)}</p>`;
    const number = LONG.length - SHORT.length + index + 1;
    return number % 3 === 0
      ? `<section><b>Bash</b> Check<pre>make check-${number}</pre></section>`
      : `<p>Answer <b>${number}</b> with a list:</p><ul><li>one</li><li>two</li></ul><pre>fn main() {}</pre>`;
  });
  return `data:text/html;base64,${Buffer.from(`<!doctype html>${parts.join("")}`).toString("base64")}`;
}

const ROUNDS = 8;

test("a session of 10,000 messages opens at its end with the work of one that has 100", async ({
  page,
  product,
}) => {
  test.slow();
  const link = new URL(await product.start("demo"));
  const server = await standIn(link.origin, answer);
  await page.goto(server.origin + link.pathname + link.search);
  await expect(page.getByRole("navigation").first()).toBeVisible();
  const list = page.getByRole("log", { name: "Conversation" });
  const worked = await processorTime(page);
  const open = async (address: string, there: () => Promise<void>) => {
    await page.goto("about:blank");
    const [before, started] = [await worked(), Date.now()];
    await page.goto(address);
    await there();
    return { work: (await worked()) - before, took: Date.now() - started };
  };
  const session = ({ id }: Played) =>
    open(`${server.origin}/#/s/${id}`, () =>
      expect(list.getByText(`Answer ${LONG.length}`)).toBeInViewport(),
    );
  const measured = { long: [], short: [], plain: [] } as Record<
    "long" | "short" | "plain",
    { work: number; took: number }[]
  >;
  const messages = { long: 0, short: 0 };
  const measure = async (name: "long" | "short") => {
    told = 0;
    measured[name].push(await session(name === "long" ? LONG : SHORT));
    messages[name] = told;
  };
  // By turns, so that whatever else the machine does, or what is still warm, meets both alike.
  for (let round = 0; round < ROUNDS; round += 1)
    for (const name of round % 2 === 0 ? (["long", "short"] as const) : (["short", "long"] as const))
      // oxlint-disable-next-line no-await-in-loop -- one after the other is the point
      await measure(name);
  await session(LONG);
  const drawn = await list.locator("[data-index]").count();
  const last = page.getByText(`Answer ${LONG.length}`);
  for (let round = 0; round < ROUNDS; round += 1)
    // oxlint-disable-next-line no-await-in-loop
    measured.plain.push(await open(plainPage(), () => expect(last).toBeAttached()));
  await server.close();
  const median = (name: keyof typeof measured, what: "work" | "took") =>
    at(
      measured[name].map((each) => each[what]),
      0.5,
    );
  const ratio = median("long", "work") / median("short", "work");
  tell({
    "opened, 10,000 messages (ms)": median("long", "took"),
    "opened, 100 messages (ms)": median("short", "took"),
    "plain page of the last 100 (ms)": median("plain", "took"),
    "10,000 beside 100, time": Number((median("long", "took") / median("short", "took")).toFixed(2)),
    "10,000 beside 100, work": Number(ratio.toFixed(2)),
    messages,
    drawn,
  });
  // The newest page, and of that what can be seen.
  expect(messages.long).toBeLessThan(LONG.length / 10);
  expect(drawn).toBeLessThan(100);
  expect(ratio).toBeLessThan(1.5);
});

interface Measured {
  tasks: { at: number; took: number }[];
  frames: number[];
  drawings: Set<number>;
  echoes: number[];
}

/** Says words in a session at a steady pace, answer after answer. */
function speaker(server: StandIn, { id, length }: Played) {
  let seq = length;
  let sent = 0;
  let words = "";
  const say = (body: object) =>
    server.send({ type: "stream.message", payload: { sessionId: id, seq: (seq += 1), message: body } });
  const piece = (event: object) => say({ type: "stream_event", event });
  return (due: number) => {
    for (; sent < due; sent += 1) {
      const name = `live${Math.floor(sent / ANSWER)}`;
      if (sent % ANSWER === 0) {
        words = "";
        piece({ type: "message_start", message: { id: name } });
        piece({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
      }
      const text = sent % 40 === 39 ? `word${sent}.\n\n` : `word${sent} `;
      words += text;
      piece({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
      if (sent % ANSWER !== ANSWER - 1) continue;
      piece({ type: "content_block_stop", index: 0 });
      say({ type: "assistant", message: { id: name, content: [{ type: "text", text: words }] } });
      piece({ type: "message_stop" });
    }
  };
}

test("words in three sessions at once keep the page responsive, and what is typed is seen at once", async ({
  page,
  product,
}) => {
  test.slow();
  const link = new URL(await product.start("demo"));
  const server = await standIn(link.origin, answer);
  await page.goto(server.origin + link.pathname + link.search);
  const list = page.getByRole("log", { name: "Conversation" });
  for (const { id } of sessions.toReversed()) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other, as a user opens them
    await page.goto(`${server.origin}/#/s/${id}`);
    // oxlint-disable-next-line no-await-in-loop
    await expect(list.getByText(`Answer ${LONG.length}`)).toBeInViewport();
  }

  await list.evaluate((element) => {
    const measured: Measured = { tasks: [], frames: [], drawings: new Set(), echoes: [] };
    Object.assign(window, { measured });
    // In which frames words came into the list, by the number of frames before them.
    new MutationObserver((changes) => {
      if (changes.some(({ target }) => target.textContent?.includes("word")))
        measured.drawings.add(measured.frames.length);
    }).observe(element, { subtree: true, childList: true, characterData: true });
    // The browser reports what takes 50 ms or more.
    new PerformanceObserver((entries) => {
      for (const { startTime, duration } of entries.getEntries())
        measured.tasks.push({ at: startTime, took: duration });
    }).observe({ type: "longtask" });
    // From the key to the frame that shows its letter: the task behind the next frame comes after its painting.
    addEventListener("input", ({ timeStamp }) => {
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.addEventListener("message", () => measured.echoes.push(performance.now() - timeStamp));
        port1.start();
        port2.postMessage(undefined);
      });
    });
    let before = performance.now();
    const frame = (now: number) => {
      measured.frames.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const protocol = await page.context().newCDPSession(page);
  const empty = await heap(protocol);
  const worked = await processorTime(page);
  const begun = await worked();
  const total = SECONDS * RATE;
  const speakers = sessions.map((played) => speaker(server, played));
  // As many as are due by the clock, whatever the timer does.
  const streamed = new Promise<void>((resolve) => {
    const started = Date.now();
    const timer = setInterval(() => {
      const due = Math.min(total, Math.floor(((Date.now() - started) / 1000) * RATE));
      for (const speak of speakers) speak(due);
      if (due < total) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  const field = page.getByRole("textbox", { name: "Message" });
  await field.focus();
  // About fifteen letters a second, for as long.
  await page.keyboard.type("typing ".repeat(2 * SECONDS), { delay: 65 });
  await streamed;
  await expect(list.getByText(`word${total - 1}`)).toBeInViewport();
  const perWord = (((await worked()) - begun) * 1000) / (total * sessions.length);
  const { tasks, frames, drawings, echoes } = await page.evaluate(() => {
    const { measured } = window as unknown as { measured: Measured };
    return { ...measured, drawings: measured.drawings.size };
  });
  const full = await heap(protocol);
  await server.close();
  // What someone feels who types: the worst moment of each second. 0 where nothing took 50 ms.
  const worst = Array.from({ length: SECONDS }, () => 0);
  const start = tasks[0]?.at ?? 0;
  for (const { at: time, took } of tasks) {
    const second = Math.min(SECONDS - 1, Math.floor((time - start) / 1000));
    worst[second] = Math.max(worst[second] ?? 0, took);
  }
  tell({
    words: total * sessions.length,
    drawings,
    "long tasks": tasks.length,
    "longest task of a second, p95 (ms)": Math.round(at(worst, 0.95)),
    "frame p50 (ms)": Math.round(at(frames, 0.5)),
    "frame p95 (ms)": Math.round(at(frames, 0.95)),
    "work for a word (ms)": Number(perWord.toFixed(2)),
    "typed to painted, p50 (ms)": Math.round(at(echoes, 0.5)),
    "typed to painted, p95 (ms)": Math.round(at(echoes, 0.95)),
    "letters typed": echoes.length,
    "heap before, after (MB)": [empty, full],
  });
  // What comes quickly is drawn together: thirty times a second at most, and less often where the machine is slow.
  expect(drawings).toBeGreaterThan(0);
  expect(drawings).toBeLessThan(total / 3);
  expect(echoes.length).toBeGreaterThan(0);
});

test("the page begins with less than 250 KB of script", async ({ product }) => {
  const link = await product.start("demo");
  // From the page as it is sent: once it is idle, it fetches more than it begins with.
  const page = await (await fetch(new URL("/", link))).text();
  const first = [...page.matchAll(/(?:src|href)="([^"]+\.js)"/g)].map(
    (match) => new URL(match[1] ?? "", link).href,
  );
  const sizes = await Promise.all(first.map(compressedSize));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  tell({ "initial script (bytes, gzip)": total });
  expect(first.length).toBeGreaterThan(0);
  expect(total).toBeLessThan(250_000);
});

function compressedSize(address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(address, { headers: { "accept-encoding": "gzip" } }, (response) => {
      let size = 0;
      response.on("data", (data: Buffer) => (size += data.length));
      response.on("end", () => resolve(size));
    }).on("error", reject);
  });
}
