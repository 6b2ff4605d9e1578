import { describe, expect, it } from "vitest";
import type { Json } from "../wire/json";
import { type Entry, messageEntry } from "./entries";
import type { Item } from "./items";
import { append, emptyTranscript, prepend, rawEntries, type Transcript } from "./transcript";

/** Numbers messages as the server would. */
function entries(messages: readonly Json[], from = 1): Entry[] {
  return messages.map((message, index) =>
    message.type === "user_prompt"
      ? { kind: "prompt", seq: from + index, prompt: String(message.prompt) }
      : message.type === "status"
        ? {
            kind: "status",
            seq: from + index,
            status: message.status as "idle",
            error: message.error as string,
          }
        : messageEntry(from + index, message),
  );
}

function read(...messages: Json[]): Transcript {
  return append(emptyTranscript, entries(messages));
}

const stream = (event: Json, parent: string | null = null): Json => ({
  type: "stream_event",
  event,
  parent_tool_use_id: parent,
});
const start = (id: string) => stream({ type: "message_start", message: { id } });
const open = (index: number, content_block: Json) =>
  stream({ type: "content_block_start", index, content_block });
const delta = (index: number, change: Json) => stream({ type: "content_block_delta", index, delta: change });
const word = (index: number, text: string) => delta(index, { type: "text_delta", text });
const close = (index: number) => stream({ type: "content_block_stop", index });
const assistant = (id: string, block: Json, parent: string | null = null): Json => ({
  type: "assistant",
  message: { id, content: [block] },
  parent_tool_use_id: parent,
});
const toolResult = (id: string, content: unknown, more: Json = {}): Json => ({
  type: "user",
  message: { content: [{ type: "tool_result", tool_use_id: id, content }] },
  ...more,
});
const bash = { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } };
const success: Json = {
  duration_ms: 1200,
  type: "result",
  subtype: "success",
  is_error: false,
  num_turns: 2,
  total_cost_usd: 0.01,
  usage: { input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 3, cache_creation_input_tokens: 4 },
};

const shape = (item: Item) =>
  item.kind === "text" || item.kind === "thinking"
    ? `${item.kind}:${item.text}`
    : item.kind === "tool"
      ? `${item.name}:${item.phase}`
      : item.kind;

describe("a streamed message", () => {
  it("grows word by word", () => {
    const half = read(start("m1"), open(0, { type: "text", text: "" }), word(0, "Hel"));
    expect(half.items).toMatchObject([{ kind: "text", text: "Hel", live: true }]);
    const whole = append(half, entries([word(0, "lo")], 4));
    expect(whole.items).toMatchObject([{ kind: "text", text: "Hello", live: true }]);
  });

  it("keeps its key when the finished form replaces it, whichever comes first, line or stop", () => {
    const streamed = [start("m1"), open(0, { type: "text", text: "" }), word(0, "Hello")];
    const line = assistant("m1", { type: "text", text: "Hello" });
    for (const end of [
      [line, close(0)],
      [close(0), line],
      [close(0), stream({ type: "message_stop" }), line],
    ]) {
      const { items } = read(...streamed, ...end);
      expect(items).toMatchObject([{ key: "m1:0", text: "Hello", live: false }]);
    }
    expect(read(line).items[0]?.key).toBe("m1:0");
  });

  it("matches each block of a message with its own line", () => {
    const { items } = read(
      start("m1"),
      open(0, { type: "thinking", thinking: "" }),
      delta(0, { type: "thinking_delta", thinking: "Hm" }),
      assistant("m1", { type: "thinking", thinking: "Hm" }),
      close(0),
      open(1, { type: "text", text: "" }),
      word(1, "one"),
      assistant("m1", { type: "text", text: "one" }),
      open(2, { type: "text", text: "" }),
      word(2, "two"),
      assistant("m1", { type: "text", text: "two" }),
      open(3, { ...bash, input: {} }),
      delta(3, { type: "input_json_delta", partial_json: '{"command":' }),
      assistant("m1", bash),
    );
    expect(items.map(shape)).toEqual(["thinking:Hm", "text:one", "text:two", "Bash:running"]);
    expect(items.map((item) => item.key)).toEqual(["m1:0", "m1:1", "m1:2", "m1:3"]);
    expect(items[3]).toMatchObject({ input: { command: "ls" } });
  });

  it("lets the pieces go once it is finished, and keeps them when it was cut off", () => {
    const pieces = [start("m1"), open(0, { type: "text", text: "" }), word(0, "Hello")];
    const finished = read(...pieces, assistant("m1", { type: "text", text: "Hello" }), success);
    expect(finished.entries).toHaveLength(2);
    expect(finished.pieces).toHaveLength(0);

    const cut = read(...pieces, success);
    expect(cut.items.map(shape)).toEqual(["text:Hello", "result"]);
    expect(prepend(cut, entries([{ type: "user_prompt", prompt: "hi" }], 0)).items.map(shape)).toEqual([
      "prompt",
      "text:Hello",
      "result",
    ]);
  });

  it("leaves the other items untouched, so that only the tail is drawn again", () => {
    const before = read(
      { type: "user_prompt", prompt: "hi" },
      start("m1"),
      open(0, { type: "text", text: "" }),
      word(0, "a"),
    );
    const after = append(before, entries([word(0, "b")], 5));
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[1]).not.toBe(before.items[1]);
    expect(before.items[1]).toMatchObject({ text: "a" });
  });

  it("asks for its beginning when the page starts in its middle", () => {
    expect(read(word(0, "lo")).orphaned).toBe(true);
    expect(read(word(0, "lo"), assistant("m1", { type: "text", text: "Hello" })).orphaned).toBe(false);
  });
});

describe("a tool call", () => {
  it("runs, and ends with what it returned", () => {
    const running = read(assistant("m1", bash));
    expect(running.items).toMatchObject([{ kind: "tool", phase: "running", toolUseId: "t1" }]);
    const done = append(
      running,
      entries([toolResult("t1", "a\nb", { tool_use_result: { stdout: "a\nb", stderr: "" } })], 2),
    );
    expect(done.items).toMatchObject([
      { phase: "success", output: "a\nb", details: { stdout: "a\nb" }, seqs: [1, 2] },
    ]);
  });

  it("fails with an error result", () => {
    const { items } = read(assistant("m1", bash), {
      type: "user",
      message: {
        content: [
          { type: "tool_result", tool_use_id: "t1", is_error: true, content: [{ type: "text", text: "no" }] },
        ],
      },
    });
    expect(items).toMatchObject([{ phase: "error", output: "no" }]);
  });

  it("is stopped when the turn ends without a result for it", () => {
    expect(read(assistant("m1", bash), success).items.map(shape)).toEqual(["Bash:stopped", "result"]);
  });

  it("finds its call on a page that is loaded later", () => {
    const newer = append(emptyTranscript, entries([toolResult("t1", "done"), success], 11));
    expect(newer.items.map(shape)).toEqual(["result"]);
    const all = prepend(newer, entries([assistant("m1", bash)], 10));
    expect(all.items.map(shape)).toEqual(["Bash:success", "result"]);
  });

  it("shows pictures of harmless kinds only", () => {
    const image = (media_type: string) => ({
      type: "image",
      source: { type: "base64", media_type, data: "AA==" },
    });
    const { items } = read(
      assistant("m1", bash),
      toolResult("t1", [image("image/png"), image("image/svg+xml")]),
    );
    expect(items).toMatchObject([{ images: ["data:image/png;base64,AA=="] }]);
  });
});

describe("the end of a turn", () => {
  it("says what it cost", () => {
    expect(read(success).items).toMatchObject([
      {
        kind: "result",
        outcome: "success",
        durationMs: 1200,
        totalCostUsd: 0.01,
        tokensIn: 17,
        tokensOut: 5,
      },
    ]);
  });

  it("has the figures that the server gives its turn, and never those of the turns before", () => {
    const status = (seq: number, costUsd: number): Entry => ({
      kind: "status",
      seq,
      status: "completed",
      turn: { durationMs: 900, tokensIn: 3, tokensOut: 2, costUsd },
    });
    const turn = (seq: number, total: number, cost: number): Entry[] => [
      { kind: "prompt", seq, prompt: "go" },
      messageEntry(seq + 1, { ...success, total_cost_usd: total }),
      status(seq + 2, cost),
    ];
    const { items } = append(emptyTranscript, [...turn(1, 0.5, 0.5), ...turn(4, 0.75, 0.25)]);
    const results = items.filter((item) => item.kind === "result");
    expect(results).toMatchObject([
      { costUsd: 0.5, durationMs: 900, tokensIn: 3, tokensOut: 2 },
      { costUsd: 0.25, totalCostUsd: 0.75 },
    ]);
    // A log of an earlier version: what came on top, if the turn before is loaded.
    const old = append(emptyTranscript, [
      messageEntry(1, { ...success, total_cost_usd: 0.5 }),
      messageEntry(2, { ...success, total_cost_usd: 0.75 }),
      messageEntry(3, { ...success, total_cost_usd: 0.1 }),
    ]);
    expect(old.items.map((item) => item.kind === "result" && item.costUsd)).toEqual([undefined, 0.25, 0.1]);
  });

  it("without a result keeps how long it took", () => {
    const { items } = append(emptyTranscript, [
      { kind: "prompt", seq: 1, prompt: "go" },
      {
        kind: "status",
        seq: 2,
        status: "error",
        error: "gone",
        turn: { durationMs: 40, tokensIn: 0, tokensOut: 0, costUsd: 0 },
      },
    ]);
    expect(items.at(-1)).toMatchObject({ kind: "notice", code: "failed", text: "gone", durationMs: 40 });
  });

  it("is an error when the agent says so in either way", () => {
    const flagged = read({ ...success, is_error: true, result: "API Error" });
    expect(flagged.items).toMatchObject([{ outcome: "error", problems: ["API Error"] }]);
    const named = read({ ...success, subtype: "error_max_turns", errors: ["too many"] });
    expect(named.items).toMatchObject([{ outcome: "error", problems: ["too many"] }]);
  });

  it("is no error when the user stopped it", () => {
    const stopped = { ...success, subtype: "error_during_execution", is_error: true };
    const interrupted = {
      type: "user",
      message: { content: [{ type: "text", text: "[Request interrupted by user]" }] },
    };
    // A stop is shown once: by the result, or by a notice if there is no result.
    expect(read(interrupted, stopped).items).toMatchObject([{ kind: "result", outcome: "stopped" }]);
    expect(read(interrupted, { type: "status", status: "idle" }).items).toMatchObject([
      { kind: "notice", code: "interrupted" },
    ]);
    expect(read(stopped, { type: "status", status: "idle" }).items).toMatchObject([{ outcome: "stopped" }]);
  });

  it("shows why the agent ended without a result, and does not say it twice", () => {
    expect(read({ type: "status", status: "error", error: "it died" }).items).toMatchObject([
      { kind: "notice", code: "failed", text: "it died" },
    ]);
    const failed = { ...success, is_error: true, result: "boom" };
    expect(read(failed, { type: "status", status: "error", error: "boom" }).items.map(shape)).toEqual([
      "result",
    ]);
  });
});

describe("other messages", () => {
  it("shows a start only when it says something new", () => {
    const init = {
      type: "system",
      subtype: "init",
      model: "m",
      cwd: "/p",
      permissionMode: "default",
      session_id: "s",
      tools: ["Bash"],
    };
    const { items } = read(init, init, { ...init, permissionMode: "plan" });
    expect(items).toMatchObject([
      { kind: "init", toolCount: 1 },
      { kind: "init", permissionMode: "plan" },
    ]);
  });

  it("counts retries in one notice", () => {
    const retry = (attempt: number) => ({ type: "system", subtype: "api_retry", attempt });
    expect(read(retry(1), retry(2)).items).toMatchObject([{ code: "retrying", retry: { attempt: 2 } }]);
  });

  it.each([
    [401, "authentication_failed", "signIn"],
    [429, "rate_limit", "rateLimit"],
    [529, "overloaded", "overloaded"],
    [500, "server_error", "server"],
    [null, "unknown", "unreachable"],
  ])("says why it is tried again after %s", (error_status, error, reason) => {
    const message = {
      type: "system",
      subtype: "api_retry",
      attempt: 2,
      max_retries: 10,
      retry_delay_ms: 500,
      error_status,
      error,
    };
    expect(read(message).items).toMatchObject([
      { retry: { attempt: 2, limit: 10, reason, status: error_status ?? undefined, delayMs: 500 } },
    ]);
  });

  it("keeps a subagent's words with their parent", () => {
    const { items } = read(
      assistant("m1", { ...bash, name: "Task" }),
      assistant("m2", { type: "text", text: "sub" }, "t1"),
    );
    expect(items[1]).toMatchObject({ kind: "text", text: "sub", parent: "t1" });
  });

  it.each([
    ["an unknown type", { type: "command_lifecycle", phase: "x" }],
    ["an unknown subtype", { type: "system", subtype: "thinking_tokens" }],
    ["no type at all", {}],
    ["content of the wrong kind", { type: "assistant", message: { content: 7 } }],
    ["an echo of the user's own words", { type: "user", isReplay: true, message: { content: "hi" } }],
  ])("passes over %s", (_, message) => {
    expect(read(message).items).toEqual([]);
  });

  it("gives the raw messages behind an item", () => {
    const transcript = read(assistant("m1", bash), toolResult("t1", "x"));
    const [tool] = transcript.items;
    expect(tool && rawEntries(transcript, tool.seqs).map((entry) => entry.seq)).toEqual([1, 2]);
  });
});
