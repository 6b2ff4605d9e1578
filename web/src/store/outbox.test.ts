import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../gen/errors";
import type { ServerEvent } from "../gen/events";
import {
  doubt,
  emptyOutbox,
  type Outbox,
  reduceOutbox,
  sendPrompt,
  settleDoubts,
  takeReturned,
} from "./outbox";

const send = (outbox: Outbox, ...prompts: string[]) =>
  prompts.reduce((before, prompt) => sendPrompt(before, "a", { prompt }, 5), outbox);
const sent = send(emptyOutbox, "do it");
const history = (queue: string[], messages: Record<string, unknown>[] = []): ServerEvent => ({
  type: "session.history",
  payload: {
    sessionId: "a",
    status: "idle",
    messages,
    seqs: messages.map(() => 7),
    lastSeq: 9,
    pending: [],
    queue,
  },
});
const told = (prompt: string, seq = 6): ServerEvent => ({
  type: "stream.user_prompt",
  payload: { sessionId: "a", prompt, uuid: "u", seq },
});
const queue = (...prompts: string[]): ServerEvent => ({
  type: "session.queue",
  payload: { sessionId: "a", prompts },
});
const refused = (code: ErrorCode = "internal"): ServerEvent => ({
  type: "runner.error",
  payload: { sessionId: "a", message: "no", code },
});
const onItsWay = (outbox: Outbox) => outbox.sending.get("a")?.map(({ prompt }) => prompt) ?? [];
const back = (outbox: Outbox) => outbox.returned.get("a")?.map(({ prompt }) => prompt) ?? [];

describe("a prompt on its way", () => {
  it("has arrived when the log, the queue or a page of history has it", () => {
    const page = history([], [{ type: "user_prompt", prompt: "do it" }]);
    for (const event of [told("do it"), queue("do it"), history(["do it"]), page]) {
      for (const outbox of [sent, doubt(sent)]) {
        const { sending, returned } = settleDoubts(reduceOutbox(outbox, event, []), "a", 9);
        expect([sending.size, returned.size]).toEqual([0, 0]);
      }
    }
  });

  it("is not taken for another one", () => {
    expect(reduceOutbox(sent, told("something else"), [])).toBe(sent);
    expect(reduceOutbox(sent, told("do it", 5), [])).toBe(sent);
    expect(reduceOutbox(sent, queue("do it"), ["do it"])).toBe(sent);
    expect(reduceOutbox(sent, history(["do it"]), ["do it"])).toBe(sent);
  });

  it("is left on its way by a history that was asked for before it was sent", () => {
    const outbox = settleDoubts(reduceOutbox(sent, history([]), []), "a", 9);
    expect([onItsWay(outbox), back(outbox)]).toEqual([["do it"], []]);
  });

  it("keeps its order among others, and each is acknowledged for itself", () => {
    const three = send(emptyOutbox, "one", "two", "one");
    expect(onItsWay(three)).toEqual(["one", "two", "one"]);
    expect(onItsWay(reduceOutbox(three, told("one"), []))).toEqual(["two", "one"]);
    expect(onItsWay(reduceOutbox(three, queue("one", "two"), ["one"]))).toEqual(["one", "one"]);
    expect(new Set(three.sending.get("a")?.map(({ id }) => id)).size).toBe(3);
  });

  it("goes with its session", () => {
    const deleted: ServerEvent = { type: "session.deleted", payload: { sessionId: "a" } };
    expect(reduceOutbox(sent, deleted, []).sending.size).toBe(0);
  });
});

describe("a prompt whose connection broke", () => {
  it("comes back once the log was read as far as a later history says, and does not have it", () => {
    const asked = reduceOutbox(doubt(send(emptyOutbox, "one", "two")), history([]), []);
    expect(settleDoubts(asked, "a", 8)).toBe(asked);
    expect(back(settleDoubts(asked, "a", 9))).toEqual(["one", "two"]);
    expect(onItsWay(settleDoubts(asked, "a", 9))).toEqual([]);
  });

  it("does not come back when the log has it after all", () => {
    const asked = reduceOutbox(doubt(send(emptyOutbox, "one", "two")), history([]), []);
    expect(back(settleDoubts(reduceOutbox(asked, told("one", 9), []), "a", 9))).toEqual(["two"]);
  });

  it("is not what a refusal on the new connection is about", () => {
    const outbox = reduceOutbox(send(doubt(sent), "and that"), refused(), []);
    expect([onItsWay(outbox), back(outbox)]).toEqual([["do it"], ["and that"]]);
    expect(reduceOutbox(doubt(sent), refused(), [])).toEqual(doubt(sent));
  });
});

describe("a prompt that was refused", () => {
  it("comes back, the first of them, with all that went along", () => {
    const attachments = [{ mediaType: "image/png", data: "AAAA" }];
    const context = { mode: "conversation", currentView: "session", selectedFile: { path: "/p/a" } };
    const two = send(sendPrompt(emptyOutbox, "a", { prompt: "look", attachments, context }, 5), "next");
    const outbox = reduceOutbox(two, refused(), []);
    expect(outbox.returned.get("a")).toEqual([{ prompt: "look", attachments, context }]);
    expect(onItsWay(outbox)).toEqual(["next"]);
    expect(takeReturned(outbox, "a").returned.size).toBe(0);
  });

  it("is not taken back by the refusal of something else", () => {
    expect(reduceOutbox(sent, refused("queue_changed"), [])).toBe(sent);
    expect(reduceOutbox(sent, refused("already_answered"), [])).toBe(sent);
    expect(reduceOutbox(sent, refused("held_up"), [])).toBe(sent);
  });
});
