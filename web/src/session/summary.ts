/**
 * A session's totals. The server keeps them for the whole session and sends them with it; nothing here adds up what happens
 * to be loaded. Loaded entries only add details: the edits of a file, or what a running task has used so far. Pure.
 */
import type { Summary, TaskReport } from "../gen/messages";
import { relativePath } from "../lib/format";
import { asNumber, asString } from "../wire/json";
import { familyOf } from "./describe";
import type { Item, ToolItem } from "./items";
import { type Changes, changesOf } from "./patch";
import { pathOf } from "./toolCalls";

export type { Summary, Todo } from "../gen/messages";

/** The totals of a session that has not begun. */
export const emptySummary: Summary = {
  turns: 0,
  workingMs: 0,
  tokensIn: 0,
  tokensOut: 0,
  costUsd: 0,
  filesChanged: [],
  todos: [],
  tasks: [],
  mcp: {},
  lastActivity: 0,
};

/** How long turns have run, the running one included. */
export function workingTime({ workingMs, turnBegan }: Summary, now: number): number {
  return workingMs + (turnBegan === undefined ? 0 : Math.max(0, now - turnBegan));
}

export interface LiveServer {
  readonly name: string;
  readonly status: string;
}

/** The MCP servers, as they were when the last turn began. */
export const serversOf = ({ mcp }: Summary): LiveServer[] =>
  Object.entries(mcp).map(([name, status]) => ({ name, status }));

export interface Task {
  readonly id: string;
  readonly description: string;
  /** The kind of subagent, if it is one. */
  readonly agent: string | undefined;
  readonly background: boolean;
  readonly tokens: number | undefined;
  readonly tools: number | undefined;
  readonly durationMs: number | undefined;
}

/** The tasks that run. `reports`: what each was last reported to have used, as far as that is loaded. */
export function tasksOf({ tasks }: Summary, reports: ReadonlyMap<string, TaskReport> = new Map()): Task[] {
  return tasks.map(({ id, description, subagentType, background }) => {
    const report = reports.get(id);
    return {
      id,
      description: description || asString(report?.summary) || id,
      agent: subagentType,
      background: background === true,
      tokens: asNumber(report?.usage?.total_tokens),
      tools: asNumber(report?.usage?.tool_uses),
      durationMs: asNumber(report?.usage?.duration_ms),
    };
  });
}

export interface ChangedFile {
  /** Relative to the working directory where inside it. */
  readonly path: string;
  /** The edits that are loaded, oldest first. */
  readonly edits: readonly ToolItem[];
  /** How many lines they changed; unknown unless all of them are loaded. */
  readonly changes: Changes | undefined;
}

/** `whole`: all of the session is loaded. */
export function filesOf(
  { filesChanged }: Summary,
  items: readonly Item[],
  cwd: string,
  whole: boolean,
): ChangedFile[] {
  const edits = items.filter(isEdit);
  return filesChanged.map((path) => {
    const own = edits.filter(({ input }) => relativePath(pathOf(input) ?? "", cwd) === path);
    return { path, edits: own, changes: whole && own.length > 0 ? sumOf(own) : undefined };
  });
}

const isEdit = (item: Item): item is ToolItem =>
  item.kind === "tool" && item.phase === "success" && familyOf(item.name) === "edit";

function sumOf(edits: readonly ToolItem[]): Changes {
  return edits
    .map(({ input, details }) => changesOf(input, details))
    .reduce((sum, { added, removed }) => ({ added: sum.added + added, removed: sum.removed + removed }));
}
