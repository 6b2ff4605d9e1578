import { describe, expect, it } from "vitest";
import type { ServerEvent, SessionInfo } from "../gen/events";
import { openLog } from "../session/log";
import { doubt, sendPrompt } from "./outbox";
import { parseRoute, routeHash } from "./route";
import { type AppState, initialState, reduceEvents } from "./state";

const info: SessionInfo = {
  id: "a",
  title: "A",
  status: "idle",
  cwd: "/p",
  createdAt: 1,
  updatedAt: 1,
  permissionMode: "default",
  approval: "ask",
  settings: { permissionMode: "default", approval: "ask" },
  archived: false,
  queue: [],
  agent: { state: "absent" },
  pending: 0,
  lastSeq: 0,
};
const listed: ServerEvent = { type: "session.list", payload: { sessions: [info] } };
const prompt = (seq: number): ServerEvent => ({
  type: "stream.user_prompt",
  payload: { sessionId: "a", prompt: `p${seq}`, uuid: `u${seq}`, seq },
});
const opened = (state: AppState): AppState => ({ ...state, logs: new Map([["a", openLog(0, 0)]]) });
const shown = (state: AppState) =>
  state.logs.get("a")?.transcript.items.map((item) => item.kind === "prompt" && item.text);

describe("a frame of events", () => {
  it("lists, then follows", () => {
    const state = reduceEvents(initialState, [listed, prompt(1)], 7);
    expect(state.listed).toBe(true);
    expect(state.sessions.get("a")).toMatchObject({ lastPrompt: "p1", lastSeq: 1, updatedAt: 7 });
    expect(state.logs.size).toBe(0);
  });

  it("expects a session that has begun until a list tells of it", () => {
    const begun: ServerEvent = { type: "session.started", payload: { sessionId: "a", requestId: "r" } };
    const state = reduceEvents(initialState, [{ ...listed, payload: { sessions: [] } }, begun], 7);
    expect([state.expected, state.sessions.size]).toEqual(["a", 0]);
    expect(reduceEvents(state, [listed], 7)).toMatchObject({ expected: undefined });
  });

  it("fills the logs that are open", () => {
    expect(shown(reduceEvents(opened(initialState), [listed, prompt(1), prompt(2)], 7))).toEqual([
      "p1",
      "p2",
    ]);
  });

  it("keeps the queue, and lets a deleted session go", () => {
    const queued = reduceEvents(
      opened(initialState),
      [listed, { type: "session.queue", payload: { sessionId: "a", prompts: ["x"] } }],
      7,
    );
    expect(queued.logs.get("a")?.queue).toEqual(["x"]);
    const gone = reduceEvents(
      { ...queued, leaving: new Set(["a"]) },
      [{ type: "session.deleted", payload: { sessionId: "a" } }],
      8,
    );
    expect([gone.logs.size, gone.sessions.size, gone.leaving.size]).toEqual([0, 0, 0]);
  });
});

describe("a prompt that is on its way", () => {
  const history = (lastSeq: number, queue: string[] = []): ServerEvent => ({
    type: "session.history",
    payload: { sessionId: "a", status: "idle", messages: [], seqs: [], lastSeq, pending: [], queue },
  });
  const sending = (words: string): AppState => {
    const state = reduceEvents(opened(initialState), [listed], 7);
    return { ...state, outbox: sendPrompt(state.outbox, "a", { prompt: words }, 0) };
  };
  const broken = (state: AppState): AppState => ({ ...state, outbox: doubt(state.outbox) });
  const returned = (state: AppState) => state.outbox.returned.get("a")?.map((each) => each.prompt);

  it("is not given back by the history that opens its session", () => {
    const state = reduceEvents(sending("p1"), [history(0)], 7);
    expect([state.outbox.sending.size, returned(state)]).toEqual([1, undefined]);
    expect(reduceEvents(state, [prompt(1)], 7).outbox.sending.size).toBe(0);
  });

  it("is given back after a break when the log is complete without it", () => {
    expect(returned(reduceEvents(broken(sending("p1")), [history(0)], 7))).toEqual(["p1"]);
  });

  it("is not given back while the log has a gap that it may be in", () => {
    const early = reduceEvents(broken(sending("p1")), [history(2), prompt(2)], 7);
    expect(returned(early)).toBeUndefined();
    const whole = reduceEvents(early, [prompt(1)], 7);
    expect([whole.outbox.sending.size, returned(whole)]).toEqual([0, undefined]);
  });

  it("is known to be queued also when the same words waited before and have been sent", () => {
    const twice = reduceEvents(opened(initialState), [listed, history(0, ["p1"])], 7);
    const again = broken({ ...twice, outbox: sendPrompt(twice.outbox, "a", { prompt: "p1" }, 1) });
    const state = reduceEvents(again, [prompt(1), history(1, ["p1"])], 7);
    expect([state.outbox.sending.size, returned(state)]).toEqual([0, undefined]);
  });
});

describe("routes", () => {
  it.each([
    ["#/s/0b7c-1", { view: "session", id: "0b7c-1" }],
    ["#/new", { view: "start" }],
    ["", { view: "latest" }],
    ["#/s/../x", { view: "latest" }],
  ] as const)("%s", (hash, route) => {
    expect(parseRoute(hash)).toEqual(route);
  });

  it("can be read back", () => {
    const route = { view: "session", id: "x" } as const;
    expect(parseRoute(routeHash(route))).toEqual(route);
  });
});
