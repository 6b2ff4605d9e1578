import { describe, expect, it } from "vitest";
import { acceptEvents, openLog, type SequencedEvent } from "./log";
import { projectRows, type Row } from "./rows";

const sessionId = "s";
let seq = 0;
const message = (body: Record<string, unknown>): SequencedEvent => ({
  type: "stream.message",
  payload: { sessionId, seq: ++seq, message: body },
});
const call = (id: string, name: string, parent: string | null = null) =>
  message({
    type: "assistant",
    message: { id: `m-${id}`, content: [{ type: "tool_use", id, name, input: {} }] },
    parent_tool_use_id: parent,
  });
const say = (text: string, parent: string | null = null) =>
  message({
    type: "assistant",
    message: { id: `m-${text}`, content: [{ type: "text", text }] },
    parent_tool_use_id: parent,
  });
const ask = (toolUseId: string): SequencedEvent => ({
  type: "permission.request",
  payload: {
    sessionId,
    seq: ++seq,
    requestId: `r-${toolUseId}`,
    toolUseId,
    toolName: "Bash",
    input: {},
    shown: "",
  },
});

function project(status: "running" | "idle", ...make: (() => SequencedEvent)[]): Row[] {
  seq = 0;
  return projectRows(
    acceptEvents(
      openLog(0, 0),
      make.map((each) => each()),
    ),
    status,
  );
}

const shape = (row: Row) => (row.kind === "item" ? row.item.kind : row.kind);

describe("rows", () => {
  it("put away what the conversation no longer has, in one row for each part", () => {
    seq = 0;
    const prompt = (text: string): SequencedEvent => ({
      type: "stream.user_prompt",
      payload: { sessionId, seq: ++seq, prompt: text, uuid: text },
    });
    const events = [prompt("a"), say("A"), prompt("b"), say("B"), prompt("c"), say("C"), prompt("d")];
    const log = acceptEvents(openLog(0, 0), events);
    const parts = [
      { afterSeq: 2, throughSeq: 4 },
      { afterSeq: 4, throughSeq: 6 },
    ];
    const rows = projectRows(log, "idle", [], parts);
    expect(rows.map(shape)).toEqual(["prompt", "text", "rewound", "rewound", "prompt"]);
    expect(rows.slice(2, 4)).toMatchObject([
      { prompts: 1, newest: false },
      { prompts: 1, newest: true },
    ]);
  });

  it("put a decision on the card of its tool call", () => {
    const [row, ...rest] = project(
      "running",
      () => call("t1", "Bash"),
      () => ask("t1"),
    );
    expect(row).toMatchObject({ kind: "item", decision: { request: { toolUseId: "t1" } } });
    expect(rest).toEqual([]);
  });

  it("ask all the same when the call is not there", () => {
    expect(
      project(
        "running",
        () => say("hi"),
        () => ask("elsewhere"),
      ).map(shape),
    ).toEqual(["text", "decision"]);
  });

  it("put a subagent's conversation into the card that started it", () => {
    const rows = project(
      "idle",
      () => call("t1", "Task"),
      () => say("inside", "t1"),
      () => say("outside"),
    );
    expect(rows.map(shape)).toEqual(["tool", "text"]);
    expect(rows[0]).toMatchObject({ children: [{ text: "inside" }] });
  });

  it("show a subagent's words when its call is on an older page", () => {
    expect(project("idle", () => say("inside", "unknown")).map(shape)).toEqual(["text"]);
  });

  it("say that work goes on only when nothing else does", () => {
    expect(project("running", () => say("hi")).map(shape)).toEqual(["text", "working"]);
    expect(project("running", () => call("t1", "Bash")).map(shape)).toEqual(["tool"]);
    expect(project("idle", () => say("hi")).map(shape)).toEqual(["text"]);
  });

  it("end with what is on its way", () => {
    const sent = (id: number) => ({ promptId: `u${id}`, prompt: `p${id}` });
    expect(projectRows(openLog(0, 0), "idle", [sent(1), sent(2)])).toMatchObject([
      { kind: "sending", prompt: "p1" },
      { kind: "sending", prompt: "p2" },
    ]);
  });

  it("end with what is queued", () => {
    const queue = [
      { promptId: "u1", prompt: "next" },
      { promptId: "u2", prompt: "next" },
    ];
    const log = { ...openLog(0, 0), queue };
    expect(projectRows(log, "running").map(shape)).toEqual(["working", "queued", "queued"]);
    expect(projectRows(log, "idle").map(shape)).toEqual(["kept", "kept"]);
  });
});

describe("a call that a person changed", () => {
  const resolved = (editedInput?: Record<string, unknown>): SequencedEvent => ({
    type: "permission.resolved",
    payload: { sessionId, seq: ++seq, requestId: "r-t1", toolUseId: "t1", behavior: "allow", editedInput },
  });
  const shown = (...make: (() => SequencedEvent)[]) =>
    project("running", ...make).flatMap((row) => (row.kind === "item" ? [row.item] : []))[0];

  it("shows what ran, and keeps what was asked for", () => {
    const item = shown(
      () => call("t1", "Bash"),
      () => ask("t1"),
      () => resolved({ command: "ls" }),
    );
    expect(item).toMatchObject({ kind: "tool", input: { command: "ls" }, asked: {} });
  });

  it("is no edit where the answers to a question are put into its input", () => {
    const item = shown(
      () => call("t1", "AskUserQuestion"),
      () => ask("t1"),
      () => resolved({ answers: {} }),
    );
    expect(item).toMatchObject({ input: {} });
    expect(item).not.toHaveProperty("asked");
  });
});
