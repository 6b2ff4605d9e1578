import type { ServerEvent } from "../gen/events";
import { describe, expect, it } from "vitest";
import { emptyOutbox, ofSession, type Outbox, reduceOutbox, sendPrompt, takeReturned } from "./outbox";

const send = (outbox: Outbox, ...ids: string[]) =>
  ids.reduce(
    (before, id) =>
      sendPrompt(before, { promptId: id, commandId: `c-${id}`, sessionId: "a", prompt: "the same words" }),
    outbox,
  );
const two = send(emptyOutbox, "one", "two");

const history = (queued: readonly string[], said: readonly Record<string, unknown>[] = []): ServerEvent => ({
  type: "session.history",
  payload: {
    sessionId: "a",
    status: "idle",
    messages: [...said],
    seqs: said.map((_, index) => index + 1),
    kinds: said.map(() => "user_prompt" as const),
    lastSeq: 9,
    pending: [],
    queue: queued.map(() => "the same words"),
    queueItems: queued.map((promptId) => ({ promptId, prompt: "the same words" })),
  },
});
const said = (promptId: string): ServerEvent => ({
  type: "stream.user_prompt",
  payload: { sessionId: "a", prompt: "the same words", promptId, uuid: promptId, seq: 6 },
});
const queue = (commandId: string | undefined, ...ids: string[]): ServerEvent => ({
  type: "session.queue",
  commandId,
  payload: {
    sessionId: "a",
    prompts: ids.map(() => "the same words"),
    items: ids.map((promptId) => ({ promptId, prompt: "the same words" })),
  },
});
const status = (commandId?: string): ServerEvent => ({
  type: "session.status",
  commandId,
  payload: { sessionId: "a", status: "running", seq: 5 },
});
const refused = (commandId?: string): ServerEvent => ({
  type: "runner.error",
  commandId,
  payload: { sessionId: "a", message: "no", code: "invalid_request" },
});

const onTheirWay = (outbox: Outbox) => ofSession(outbox.sending, "a").map(({ promptId }) => promptId);
const back = (outbox: Outbox) => ofSession(outbox.returned, "a").map(({ promptId }) => promptId);

describe("a prompt on its way", () => {
  it.each<[string, ServerEvent]>([
    ["the answer to its command", status("c-one")],
    ["a queue that answers its command", queue("c-one")],
    ["its id in the queue", queue(undefined, "one")],
    ["its id in the log", said("one")],
    ["its id in a page of history", history([], [{ type: "user_prompt", promptId: "one", prompt: "x" }])],
    ["its id in the queue of a history", history(["one"])],
  ])("is acknowledged by %s, and no other with it", (_, frame) => {
    const outbox = reduceOutbox(two, frame);
    expect([onTheirWay(outbox), back(outbox)]).toEqual([["two"], []]);
  });

  it.each<[string, ServerEvent]>([
    ["a status that nobody asked for", status()],
    ["the status of another command", status("c-x")],
    ["another prompt with the same words", said("x")],
    ["a queue that has the same words", queue(undefined, "x")],
    ["an agent's message that looks like a prompt", history([], [{ type: "user_prompt", promptId: 1 }])],
    ["a refusal that nobody asked for", refused()],
    ["the refusal of another command", refused("c-configure")],
  ])("is left on its way by %s", (_, frame) => {
    expect(reduceOutbox(two, frame)).toBe(two);
  });

  it("goes with its session", () => {
    const frame: ServerEvent = { type: "session.deleted", payload: { sessionId: "a" } };
    expect(reduceOutbox(two, frame).sending.size).toBe(0);
    expect(reduceOutbox(two, { ...frame, payload: { sessionId: "b" } })).toBe(two);
  });
});

describe("a prompt that was refused", () => {
  it("comes back with all that went along, whichever of several it was", () => {
    const attachments = [{ mediaType: "image/png", data: "AAAA" }];
    const context = { mode: "conversation", currentView: "session", selectedFile: { path: "/p/a" } };
    const sent = {
      promptId: "three",
      commandId: "c-three",
      sessionId: "a",
      prompt: "look",
      attachments,
      context,
    };
    const outbox = reduceOutbox(sendPrompt(two, sent), refused("c-three"));
    expect(onTheirWay(outbox)).toEqual(["one", "two"]);
    expect(ofSession(outbox.returned, "a")).toEqual([sent]);
    expect(takeReturned(outbox, "a").returned.size).toBe(0);
    expect(back(takeReturned(outbox, "b"))).toEqual(["three"]);
  });
});
