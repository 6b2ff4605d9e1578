import { describe, expect, it } from "vitest";
import type { Json } from "../wire/json";
import { messageEntry } from "./entries";
import type { ToolItem } from "./items";
import { emptySummary, filesOf, serversOf, tasksOf, workingTime } from "./summary";
import { append, emptyTranscript } from "./transcript";

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

describe("changed files", () => {
  const summary = { ...emptySummary, filesChanged: ["a", "/else/b", "c"] };
  const patch = { structuredPatch: [{ oldStart: 1, newStart: 1, lines: ["-a", "+b", "+c", " d"] }] };
  const items = [
    tool("Write", { file_path: "/p/a", content: "x\ny\n" }),
    tool("Edit", { file_path: "/p/a" }, { details: patch }),
    tool("Edit", { file_path: "/p/c" }, { details: patch, phase: "error" }),
    tool("Edit", { file_path: "/else/b" }, { details: patch }),
  ];
  const paths = (found: ReturnType<typeof filesOf>) => found.map(({ path }) => path);

  it("are those that the server names, whatever is loaded", () => {
    expect(paths(filesOf(summary, [], "/p", false))).toEqual(["a", "/else/b", "c"]);
    expect(paths(filesOf(emptySummary, items, "/p", true))).toEqual([]);
  });

  it("have their edits, of which failed ones do not count", () => {
    expect(filesOf(summary, items, "/p", true)).toMatchObject([
      { edits: [{ name: "Write" }, { name: "Edit" }], changes: { added: 4, removed: 1 } },
      { edits: [{ name: "Edit" }], changes: { added: 2, removed: 1 } },
      { edits: [], changes: undefined },
    ]);
  });

  it("do not say how many lines changed while some edits may be missing", () => {
    for (const { changes } of filesOf(summary, items, "/p", false)) expect(changes).toBeUndefined();
  });
});

describe("tasks", () => {
  it("are those that the server says run, with what was reported of them", () => {
    const report = (seq: number, more: Json) =>
      messageEntry(seq, { type: "system", subtype: "task_progress", task_id: "x", ...more });
    const { tasks } = append(emptyTranscript, [
      report(1, { description: "Look", is_backgrounded: true }),
      report(2, { usage: { total_tokens: 7, tool_uses: 2 } }),
    ]);
    const summary = {
      ...emptySummary,
      tasks: [
        { id: "x", description: "Look", subagentType: "Explore", background: true },
        { id: "y", description: "make", taskType: "local_bash", background: false },
      ],
    };
    expect(tasksOf(summary, tasks)).toMatchObject([
      { description: "Look", agent: "Explore", background: true, tokens: 7, tools: 2 },
      // A command that the agent waits for.
      { description: "make", background: false, tokens: undefined },
    ]);
    expect(tasksOf(emptySummary, tasks)).toEqual([]);
  });
});

it("working time goes on while a turn runs", () => {
  expect(workingTime({ ...emptySummary, workingMs: 5 }, 100)).toBe(5);
  expect(workingTime({ ...emptySummary, workingMs: 5, turnBegan: 90 }, 100)).toBe(15);
  // The clocks of page and server may differ.
  expect(workingTime({ ...emptySummary, workingMs: 5, turnBegan: 110 }, 100)).toBe(5);
});

it("servers are listed by name", () => {
  expect(serversOf({ ...emptySummary, mcp: { db: "connected" } })).toEqual([
    { name: "db", status: "connected" },
  ]);
});
