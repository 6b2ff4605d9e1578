/**
 * How the page does under load, measured in the browser. The server's side of the socket is played here, so that nothing
 * but the page is measured. `TILLER_SPEED_SECONDS` sets how long words are streamed (a minute is what counts; the test
 * run takes a few seconds of it). What is counted has to be right on every machine; times are only told.
 */
import { get } from "node:http";
import type { Page } from "@playwright/test";
import { expect, test } from "./product";
import { standIn } from "./socket";

const SECONDS = Number(process.env.TILLER_SPEED_SECONDS ?? 6);
const RATE = 200;
const MESSAGES = 10_000;
const ID = "5e551000-0000-4000-8000-000000000000";

const session = {
  id: ID,
  title: "A very long session",
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
  lastSeq: MESSAGES,
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
};

/** A conversation as it is: prompts, answers with Markdown, commands with output. */
function message(seq: number): { type: string; payload: Record<string, unknown> } {
  const payload = { sessionId: ID, seq };
  if (seq % 10 === 1)
    return {
      type: "stream.user_prompt",
      payload: { ...payload, prompt: `Prompt ${seq}`, promptId: `u${seq}`, uuid: `u${seq}` },
    };
  const content =
    seq % 3 === 0
      ? {
          type: "tool_use",
          id: `t${seq}`,
          name: "Bash",
          input: { command: `make check-${seq}`, description: "Check" },
        }
      : {
          type: "text",
          text: `Answer **${seq}** with a list:\n\n- one\n- two\n\n\`\`\`rust\nfn main() {}\n\`\`\``,
        };
  return {
    type: "stream.message",
    payload: { ...payload, message: { type: "assistant", message: { id: `m${seq}`, content: [content] } } },
  };
}

const at = (values: number[], share: number) =>
  Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0);

/** For whoever reads the run's output. */
function tell(figures: object): void {
  const description = JSON.stringify(figures);
  test.info().annotations.push({ type: "speed", description });
  process.stdout.write(`speed: ${description}\n`);
}

// Recording takes more time than what it records.
test.use({ trace: "off" });

/** Begins to count the seconds that the page's thread has worked, whatever else the machine did meanwhile. */
async function processorTime(page: Page): Promise<() => Promise<number>> {
  const protocol = await page.context().newCDPSession(page);
  await protocol.send("Performance.enable", { timeDomain: "threadTicks" });
  const read = async () => {
    const { metrics } = await protocol.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0;
  };
  const before = await read();
  return async () => (await read()) - before;
}

const stream = (seq: number, event: object) => ({
  type: "stream.message",
  payload: { sessionId: ID, seq, message: { type: "stream_event", event } },
});

interface Measured {
  tasks: { at: number; took: number }[];
  frames: number[];
  drawings: Set<number>;
}

interface Asked {
  type: string;
  commandId: string;
  payload: { afterSeq: number; beforeSeq?: number; limit: number };
}

/** How many messages the page has been told. */
let told = 0;

/** What the server of one long session answers. */
function* answer({ type, commandId, payload }: Asked): Generator<object> {
  if (type === "session.list") yield { type, commandId, payload: { sessions: [session] } };
  if (type === "session.subscribe")
    for (let seq = payload.afterSeq + 1; seq <= MESSAGES; seq += 1, told += 1) yield message(seq);
  if (type !== "session.history") return;
  const last = Math.min(MESSAGES, (payload.beforeSeq ?? MESSAGES + 1) - 1);
  const length = Math.min(payload.limit, last);
  const seqs = Array.from({ length }, (_, index) => index + 1 + last - length);
  const messages = seqs.map((seq) => {
    const event = message(seq);
    return event.type === "stream.message"
      ? event.payload.message
      : { type: "user_prompt", prompt: event.payload.prompt, promptId: event.payload.promptId };
  });
  told += seqs.length;
  yield {
    type,
    commandId,
    payload: {
      sessionId: ID,
      status: "running",
      messages,
      seqs,
      kinds: seqs.map((seq) => (message(seq).type === "stream.message" ? "message" : "user_prompt")),
      lastSeq: MESSAGES,
      pending: [],
      queue: [],
      queueItems: [],
    },
  };
}

test("a session of 10,000 messages opens at its end, and 200 words a second keep the page responsive", async ({
  page,
  product,
}) => {
  test.slow();
  const link = new URL(await product.start("demo"));
  const server = await standIn(link.origin, answer);
  await page.goto(server.origin + link.pathname + link.search);
  const started = Date.now();
  await page.goto(`${server.origin}/#/s/${ID}`);
  const list = page.getByRole("log", { name: "Conversation" });
  await expect(list.getByText(`Answer ${MESSAGES}`)).toBeInViewport();
  const opened = Date.now() - started;
  // Its newest page, and of that what can be seen.
  expect(told).toBeLessThan(MESSAGES / 10);
  expect(await list.locator("[data-index]").count()).toBeLessThan(100);

  await list.evaluate((element) => {
    const measured = {
      tasks: [] as { at: number; took: number }[],
      frames: [] as number[],
      drawings: new Set<number>(),
    };
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
    let before = performance.now();
    const frame = (now: number) => {
      measured.frames.push(now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  const worked = await processorTime(page);
  let seq = MESSAGES;
  const say = (event: object) => server.send(stream((seq += 1), event));
  say({ type: "message_start", message: { id: "live" } });
  say({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  const total = SECONDS * RATE;
  const begun = Date.now();
  // As many as are due by the clock, whatever the timer does.
  await new Promise<void>((resolve) => {
    let sent = 0;
    const timer = setInterval(() => {
      const due = Math.min(total, Math.floor(((Date.now() - begun) / 1000) * RATE));
      for (; sent < due; sent += 1) {
        const text = sent % 40 === 39 ? `word${sent}.\n\n` : `word${sent} `;
        say({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
      }
      if (sent < total) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  await expect(list.getByText(`word${total - 1}`)).toBeInViewport();
  const perWord = ((await worked()) * 1000) / total;
  const { tasks, frames, drawings } = await page.evaluate(() => {
    const { measured } = window as unknown as { measured: Measured };
    return { ...measured, drawings: measured.drawings.size };
  });
  await server.close();
  // What someone feels who types: the worst moment of each second. 0 where nothing took 50 ms.
  const worst = Array.from({ length: SECONDS }, () => 0);
  const start = tasks[0]?.at ?? 0;
  for (const { at: time, took } of tasks) {
    const second = Math.min(SECONDS - 1, Math.floor((time - start) / 1000));
    worst[second] = Math.max(worst[second] ?? 0, took);
  }
  const report = {
    "opened (ms)": opened,
    words: total,
    drawings,
    "long tasks": tasks.length,
    "longest task of a second, p95 (ms)": at(worst, 0.95),
    "frame p50 (ms)": at(frames, 0.5),
    "frame p95 (ms)": at(frames, 0.95),
    "work for a word (ms)": Number(perWord.toFixed(2)),
  };
  tell(report);
  // What comes quickly is drawn together: thirty times a second at most, and less often where the machine is slow.
  expect(drawings).toBeGreaterThan(0);
  expect(drawings).toBeLessThan(total / 3);
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
