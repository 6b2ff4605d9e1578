import { describe, expect, it } from "vitest";
import type { ServerEvent } from "../gen/events";
import { emptyOutbox, reduceOutbox, sendPrompt, takeReturned } from "./outbox";

const sent = sendPrompt(emptyOutbox, "a", "do it");
const history = (queue: string[]): ServerEvent => ({
  type: "session.history",
  payload: { sessionId: "a", status: "idle", messages: [], seqs: [], lastSeq: 1, pending: [], queue },
});
const told = (prompt: string): ServerEvent => ({
  type: "stream.user_prompt",
  payload: { sessionId: "a", prompt, uuid: "u", seq: 1 },
});

describe("a prompt on its way", () => {
  it("has arrived when the log, the queue or a page of history has it", () => {
    const queued: ServerEvent = { type: "session.queue", payload: { sessionId: "a", prompts: ["do it"] } };
    for (const event of [told("do it"), queued, history(["do it"])]) {
      expect(reduceOutbox(sent, event, true)).toEqual(emptyOutbox);
    }
  });

  it("is not taken for another one", () => {
    expect(reduceOutbox(sent, told("something else"), false)).toBe(sent);
    expect(reduceOutbox(sent, history([]), false)).toBe(sent);
  });

  it("comes back when the log was caught up with and does not have it, or when it was refused", () => {
    const refused: ServerEvent = {
      type: "runner.error",
      payload: { sessionId: "a", message: "no", code: "internal" },
    };
    for (const outbox of [reduceOutbox(sent, history([]), true), reduceOutbox(sent, refused, false)]) {
      expect(outbox.sending.size).toBe(0);
      expect(outbox.returned.get("a")).toBe("do it");
      expect(takeReturned(outbox, "a")).toEqual(emptyOutbox);
    }
  });
});
