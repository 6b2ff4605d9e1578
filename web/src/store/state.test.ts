import { describe, expect, it } from "vitest";
import type { ErrorCode } from "../gen/errors";
import type { PermissionRequest, ServerEvent, SessionInfo } from "../gen/events";
import { markSent, openLog } from "../session/log";
import { sendPrompt } from "./outbox";
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
  payload: { sessionId: "a", prompt: `p${seq}`, promptId: `u${seq}`, uuid: `u${seq}`, seq },
});
const opened = (state: AppState): AppState => ({ ...state, logs: new Map([["a", openLog(0, 0)]]) });
const shown = (state: AppState) =>
  state.logs.get("a")?.transcript.items.map((item) => item.kind === "prompt" && item.text);

describe("a frame of events", () => {
  it("lists, then follows", () => {
    const state = reduceEvents(initialState, [listed, prompt(1)], 7);
    expect(state.listing.listed).toBe(true);
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
      [
        listed,
        {
          type: "session.queue",
          payload: { sessionId: "a", prompts: ["x"], items: [{ promptId: "q", prompt: "x" }] },
        },
      ],
      7,
    );
    expect(queued.logs.get("a")?.queue).toEqual([{ promptId: "q", prompt: "x" }]);
    const gone = reduceEvents(
      { ...queued, leaving: new Set(["a"]) },
      [{ type: "session.deleted", payload: { sessionId: "a" } }],
      8,
    );
    expect([gone.logs.size, gone.sessions.size, gone.leaving.size]).toEqual([0, 0, 0]);
  });
});

describe("what was refused", () => {
  const refused = (commandId: string, code: ErrorCode = "invalid_request"): ServerEvent => ({
    type: "runner.error",
    commandId,
    payload: { sessionId: "a", message: "no", code },
  });
  const asked: PermissionRequest = {
    sessionId: "a",
    requestId: "r",
    toolUseId: "t",
    toolName: "Bash",
    input: {},
    shown: "0123",
    seq: 1,
  };
  const answered = (): AppState => {
    const state = reduceEvents(
      opened(initialState),
      [listed, { type: "permission.request", payload: asked }],
      7,
    );
    const log = state.logs.get("a");
    if (!log) throw new Error("not opened");
    return { ...state, logs: new Map([["a", markSent(log, "r", "c1", { behavior: "allow" })]]) };
  };
  const decision = (state: AppState) => state.logs.get("a")?.decisions.get("r")?.state;

  it("is found by its command, so that a refused setting takes nothing else back", () => {
    const sent = { promptId: "p", commandId: "c2", sessionId: "a", prompt: "go on" };
    const state = { ...answered(), outbox: sendPrompt(initialState.outbox, sent) };
    const after = reduceEvents(state, [refused("c3")], 7);
    expect([decision(after), after.outbox.sending.size, after.outbox.returned.size]).toEqual(["sent", 1, 0]);
  });

  it("waits again, if it was an answer", () => {
    expect(decision(reduceEvents(answered(), [refused("c1")], 7))).toBe("waiting");
  });

  it("stays answered, if it had arrived before it was sent again", () => {
    expect(decision(reduceEvents(answered(), [refused("c1", "already_answered")], 7))).toBe("sent");
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
