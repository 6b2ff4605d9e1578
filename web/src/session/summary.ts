/** What a session has come to so far: its list of things to do, the files it changed, what it cost. Pure. */
import { changesOf } from "./patch";
import { familyOf } from "./describe";
import { asObject, asObjects, asString, type Json } from "../wire/json";
import type { Item, ToolItem } from "./items";

export type TodoState = "completed" | "in_progress" | "pending";

export interface Todo {
  readonly text: string;
  readonly state: TodoState;
}

/** The newest list: written whole by older agents, entry by entry by newer ones. */
export function todosOf(items: readonly Item[]): Todo[] {
  let todos = new Map<string, Todo>();
  for (const item of items) {
    if (item.kind !== "tool" || item.parent !== undefined || item.phase === "error") continue;
    if (item.name === "TodoWrite") {
      todos = new Map(asObjects(item.input.todos).map((each, index) => [`${index}`, todoOf(each)]));
    } else if (item.name === "TaskCreate") {
      const id = asString(asObject(item.details?.task)?.id) ?? `${todos.size + 1}`;
      todos.set(id, { text: asString(item.input.subject) ?? "", state: "pending" });
    } else if (item.name === "TaskUpdate") {
      const id = asString(item.input.taskId) ?? "";
      const before = todos.get(id);
      if (item.input.status === "deleted") todos.delete(id);
      else if (before) {
        const text = asString(item.input.subject) ?? before.text;
        todos.set(id, {
          text,
          state: item.input.status === undefined ? before.state : stateOf(item.input.status),
        });
      }
    }
  }
  return [...todos.values()];
}

function todoOf(each: Json): Todo {
  return { text: asString(each.content) ?? "", state: stateOf(each.status) };
}

function stateOf(status: unknown): TodoState {
  return status === "completed" || status === "in_progress" ? status : "pending";
}

export interface ChangedFile {
  readonly path: string;
  readonly added: number;
  readonly removed: number;
  /** The edits that made it so, oldest first. */
  readonly edits: readonly ToolItem[];
}

export function filesOf(items: readonly Item[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const item of items) {
    if (item.kind !== "tool" || item.phase !== "success" || familyOf(item.name) !== "edit") continue;
    const path = asString(item.input.file_path) ?? asString(item.input.notebook_path);
    if (!path) continue;
    const { added, removed } = changesOf(item.input, item.details);
    const before = files.get(path);
    files.set(path, {
      path,
      added: (before?.added ?? 0) + added,
      removed: (before?.removed ?? 0) + removed,
      edits: [...(before?.edits ?? []), item],
    });
  }
  return [...files.values()];
}

export interface Cost {
  /** All turns of the conversation: the agent itself adds them up. */
  readonly usd: number | undefined;
  readonly turns: number;
  readonly durationMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

export function costOf(items: readonly Item[]): Cost {
  const results = items.filter((item) => item.kind === "result");
  const total = (pick: (item: (typeof results)[number]) => number | undefined) =>
    results.reduce((sum, item) => sum + (pick(item) ?? 0), 0);
  return {
    usd: results.findLast((item) => item.costUsd !== undefined)?.costUsd,
    turns: total((item) => item.turns),
    durationMs: total((item) => item.durationMs),
    inputTokens: total((item) => (item.inputTokens ?? 0) + (item.cachedTokens ?? 0)),
    outputTokens: total((item) => item.outputTokens),
  };
}
