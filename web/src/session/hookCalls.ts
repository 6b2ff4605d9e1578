/** Callbacks of an agent that wait for the user. Pure. */
import type { HookEvent, ServerEvent } from "../gen/events";
import { asString, type Json } from "../wire/json";

export type Callback = Extract<ServerEvent, { type: "hook.callback" }>["payload"];

export type ClosedCallback = Extract<ServerEvent, { type: "hook.resolved" }>["payload"];

export interface HookCall extends Callback {
  /** When the agent stops waiting and goes on by itself. */
  readonly until: number;
}

/** As long as the server lets an agent wait. */
export const PATIENCE_MS = 60_000;

export const hookEvents: readonly HookEvent[] = [
  "PreToolUse",
  "PostToolUse",
  "UserPromptSubmit",
  "Stop",
  "SubagentStop",
  "PreCompact",
];

/** Without those that no longer wait. */
export function stillWaiting(calls: readonly HookCall[], now: number): readonly HookCall[] {
  return calls.every((call) => call.until > now) ? calls : calls.filter((call) => call.until > now);
}

export function withCall(calls: readonly HookCall[], callback: Callback, now: number): readonly HookCall[] {
  return [...withoutCall(calls, callback), { ...callback, until: now + PATIENCE_MS }];
}

export function withoutCall(
  calls: readonly HookCall[],
  { sessionId, callbackId }: ClosedCallback,
): readonly HookCall[] {
  return calls.filter((call) => call.sessionId !== sessionId || call.callbackId !== callbackId);
}

/** The answer, in the agent's own form. */
export const goOn = (): Json => ({ continue: true });

export function block(event: string, reason: string): Json {
  if (event === "PreToolUse") {
    return {
      hookSpecificOutput: {
        hookEventName: event,
        permissionDecision: "deny",
        permissionDecisionReason: reason,
      },
    };
  }
  return { decision: "block", reason };
}

/** What every callback has, and what the card says in its title. */
const COMMON = new Set([
  "session_id",
  "transcript_path",
  "cwd",
  "hook_event_name",
  "prompt_id",
  "permission_mode",
  "effort",
  "tool_name",
  "tool_use_id",
]);

/** What the callback is about. */
export function subjectOf(input: Json): { tool: string | undefined; details: Json } {
  const details = Object.fromEntries(Object.entries(input).filter(([name]) => !COMMON.has(name)));
  return { tool: asString(input.tool_name), details };
}
