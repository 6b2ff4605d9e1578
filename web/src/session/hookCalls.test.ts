import { describe, expect, it } from "vitest";
import {
  block,
  type Callback,
  PATIENCE_MS,
  stillWaiting,
  subjectOf,
  withCall,
  withoutCall,
} from "./hookCalls";

const callback = (callbackId: string): Callback => ({
  sessionId: "s",
  callbackId,
  hookEvent: "PreToolUse",
  input: { session_id: "s", tool_name: "Bash", tool_input: { command: "ls" } },
});

describe("callbacks", () => {
  it("wait until they are answered, or as long as the agent does", () => {
    const calls = withCall(withCall([], callback("a"), 0), callback("b"), 1_000);
    expect(withoutCall(calls, callback("a")).map((call) => call.callbackId)).toEqual(["b"]);
    expect(stillWaiting(calls, PATIENCE_MS - 1)).toBe(calls);
    expect(stillWaiting(calls, PATIENCE_MS).map((call) => call.callbackId)).toEqual(["b"]);
  });

  it("told twice are one", () => {
    expect(withCall(withCall([], callback("a"), 0), callback("a"), 1)).toHaveLength(1);
  });

  it("are blocked in the words of their event", () => {
    expect(block("PreToolUse", "no")).toEqual({
      hookSpecificOutput: {
        hookEventName: "PreToolUse",
        permissionDecision: "deny",
        permissionDecisionReason: "no",
      },
    });
    expect(block("Stop", "go on")).toEqual({ decision: "block", reason: "go on" });
  });

  it("say what they are about", () => {
    expect(subjectOf(callback("a").input)).toEqual({
      tool: "Bash",
      details: { tool_input: { command: "ls" } },
    });
  });
});
