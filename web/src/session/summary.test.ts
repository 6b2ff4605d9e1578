import { describe, expect, it } from "vitest";
import type { Json } from "../wire/json";
import { messageEntry } from "./entries";
import type { Item, ToolItem } from "./items";
import { costOf, filesOf, todosOf } from "./summary";
import { append, emptyTranscript } from "./transcript";
import { tasksOf } from "./tasks";

let count = 0;
const tool = (name: string, input: Json, more: Partial<ToolItem> = {}): ToolItem => {
  count += 1;
  return {
    kind: "tool",
    key: `${count}`,
    seqs: [],
    toolUseId: `t${count}`,
    name,
    input,
    phase: "success",
    ...more,
  };
};
const result = (costUsd: number, turns: number): Item => ({
  kind: "result",
  key: `r${costUsd}`,
  seqs: [],
  outcome: "success",
  subtype: "success",
  problems: [],
  costUsd,
  turns,
  durationMs: 1000,
  inputTokens: 10,
  cachedTokens: 5,
  outputTokens: 2,
});

describe("things to do", () => {
  it("are the newest list of those that are written whole", () => {
    const first = tool("TodoWrite", { todos: [{ content: "a", status: "pending" }] });
    const second = tool("TodoWrite", {
      todos: [
        { content: "a", status: "completed" },
        { content: "b", status: "in_progress" },
      ],
    });
    expect(todosOf([first, second])).toEqual([
      { text: "a", state: "completed" },
      { text: "b", state: "in_progress" },
    ]);
  });

  it("are kept entry by entry where the agent does so", () => {
    const items = [
      tool("TaskCreate", { subject: "one" }, { details: { task: { id: "1" } } }),
      tool("TaskCreate", { subject: "two" }, { details: { task: { id: "2" } } }),
      tool("TaskUpdate", { taskId: "1", status: "completed" }),
      tool("TaskUpdate", { taskId: "2", subject: "second" }),
      tool("TaskUpdate", { taskId: "9", status: "completed" }),
    ];
    expect(todosOf(items)).toEqual([
      { text: "one", state: "completed" },
      { text: "second", state: "pending" },
    ]);
  });
});

describe("changed files", () => {
  it("add up their edits, and failed ones do not count", () => {
    const patch = { structuredPatch: [{ oldStart: 1, newStart: 1, lines: ["-a", "+b", "+c", " d"] }] };
    const files = filesOf([
      tool("Write", { file_path: "/p/a", content: "x\ny\n" }),
      tool("Edit", { file_path: "/p/a" }, { details: patch }),
      tool("Edit", { file_path: "/p/b" }, { details: patch, phase: "error" }),
    ]);
    expect(files).toMatchObject([{ path: "/p/a", added: 4, removed: 1 }]);
    expect(files[0]?.edits).toHaveLength(2);
  });
});

describe("what it cost", () => {
  it("is what the agent added up itself, and the turns are added here", () => {
    expect(costOf([result(0.1, 1), result(0.3, 2)])).toEqual({
      usd: 0.3,
      turns: 3,
      durationMs: 2000,
      inputTokens: 30,
      outputTokens: 4,
    });
  });
});

describe("tasks", () => {
  it("are one for a call and the reports about it", () => {
    const report = (subtype: string, more: Json, seq: number) =>
      messageEntry(seq, { type: "system", subtype, task_id: "x", ...more });
    const call = messageEntry(1, {
      type: "assistant",
      message: {
        id: "m",
        content: [{ type: "tool_use", id: "t", name: "Agent", input: { description: "Look" } }],
      },
    });
    const begun = append(emptyTranscript, [call]);
    expect(tasksOf(begun)).toMatchObject([{ description: "Look", state: "running" }]);
    const ended = append(begun, [
      report("task_started", { tool_use_id: "t", description: "Look", is_backgrounded: true }, 2),
      report("task_updated", { patch: { status: "completed" } }, 3),
      report("task_notification", { status: "completed", usage: { total_tokens: 7, tool_uses: 2 } }, 4),
    ]);
    expect(tasksOf(ended)).toMatchObject([
      { description: "Look", state: "completed", background: true, tokens: 7, tools: 2 },
    ]);
  });
});
