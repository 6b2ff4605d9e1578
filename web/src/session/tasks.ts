/** What works beside the main conversation: subagents and background tasks. Pure. */
import { asNumber, asObject, asString, type Json } from "../wire/json";
import type { ToolItem } from "./items";
import type { Transcript } from "./transcript";

export type TaskState = "running" | "completed" | "failed" | "stopped";

export interface Task {
  readonly id: string;
  readonly description: string;
  /** The kind of subagent, if it is one. */
  readonly agent: string | undefined;
  readonly background: boolean;
  readonly state: TaskState;
  readonly tokens: number | undefined;
  readonly tools: number | undefined;
  readonly durationMs: number | undefined;
  readonly summary: string | undefined;
}

/** Oldest first. A subagent's call and the reports about it are one task. */
export function tasksOf(transcript: Transcript): Task[] {
  const reported = new Set([...transcript.tasks.values()].map((report) => asString(report.tool_use_id)));
  const called = transcript.items.flatMap((item) =>
    item.kind === "tool" && isAgentCall(item) && !reported.has(item.toolUseId) ? [fromCall(item)] : [],
  );
  return [...called, ...[...transcript.tasks].map(([id, report]) => fromReport(id, report))];
}

const isAgentCall = (item: ToolItem) => item.name === "Task" || item.name === "Agent";

function fromCall(item: ToolItem): Task {
  const states = {
    writing: "running",
    running: "running",
    success: "completed",
    error: "failed",
    stopped: "stopped",
  } as const;
  return {
    id: item.toolUseId,
    description: asString(item.input.description) ?? asString(item.input.prompt) ?? "",
    agent: asString(item.input.subagent_type),
    background: item.input.run_in_background === true,
    state: states[item.phase],
    tokens: asNumber(item.details?.totalTokens),
    tools: asNumber(item.details?.totalToolUseCount),
    durationMs: asNumber(item.details?.totalDurationMs),
    summary: undefined,
  };
}

function fromReport(id: string, report: Json): Task {
  const usage = asObject(report.usage);
  return {
    id,
    description: asString(report.description) ?? asString(report.summary) ?? id,
    agent: asString(report.subagent_type),
    background: report.is_backgrounded === true || asString(report.task_type) === "local_bash",
    state: stateOf(asString(report.status)),
    tokens: asNumber(usage?.total_tokens),
    tools: asNumber(usage?.tool_uses),
    durationMs: asNumber(usage?.duration_ms),
    summary: asString(report.summary),
  };
}

function stateOf(status: string | undefined): TaskState {
  switch (status) {
    case "completed":
      return "completed";
    case "failed":
    case "error":
      return "failed";
    case "stopped":
    case "killed":
      return "stopped";
    default:
      return "running";
  }
}
