import { describe, expect, it } from "vitest";
import type { ServerEvent, SessionInfo } from "../gen/events";
import { listSessions, reduceSessions, sortedSessions } from "./sessions";
import { emptySummary } from "./summary";

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
  lastSeq: 10,
};
const sessions = listSessions([info, { ...info, id: "b", updatedAt: 5 }]);
const reduce = (event: ServerEvent) => reduceSessions(sessions, event, 100).get("a");

describe("the list of sessions", () => {
  it("is sorted by the last change", () => {
    expect(sortedSessions(sessions).map((each) => each.id)).toEqual(["b", "a"]);
  });

  it("follows the status", () => {
    expect(
      reduce({ type: "session.status", payload: { sessionId: "a", status: "running", seq: 11 } }),
    ).toMatchObject({
      status: "running",
      title: "A",
      updatedAt: 100,
      lastSeq: 11,
    });
  });

  it("is not moved by a replay of what it counted", () => {
    const request = {
      sessionId: "a",
      toolUseId: "t",
      requestId: "r",
      toolName: "Bash",
      input: {},
      shown: "",
    };
    expect(reduce({ type: "permission.request", payload: { ...request, seq: 9 } })).toBe(info);
    expect(reduce({ type: "permission.request", payload: { ...request, seq: 11 } })?.pending).toBe(1);
  });

  it("learns the agent's own id", () => {
    const message = { type: "system", subtype: "init", session_id: "claude", model: "m" };
    expect(reduce({ type: "stream.message", payload: { sessionId: "a", message, seq: 11 } })).toMatchObject({
      claudeSessionId: "claude",
      model: "m",
    });
  });

  it("takes the totals that come with a page of history, unless it knows later ones", () => {
    const page = (lastSeq: number, turns: number): ServerEvent => ({
      type: "session.history",
      payload: {
        sessionId: "a",
        status: "idle",
        messages: [],
        seqs: [],
        kinds: [],
        lastSeq,
        pending: [],
        queue: [],
        summary: { ...emptySummary, turns },
      },
    });
    expect(reduce(page(9, 2))?.summary).toMatchObject({ turns: 2 });
    const known = reduceSessions(sessions, page(10, 3), 1);
    expect(reduceSessions(known, page(9, 2), 1).get("a")?.summary).toMatchObject({ turns: 3 });
    expect(reduceSessions(known, page(12, 4), 1).get("a")).toMatchObject({
      summary: { turns: 4 },
      lastSeq: 10,
      updatedAt: 1,
    });
    expect(reduceSessions(new Map(), page(10, 3), 1).size).toBe(0);
  });

  it("forgets what was deleted, and does not mind what it never knew", () => {
    expect(reduce({ type: "session.deleted", payload: { sessionId: "a" } })).toBeUndefined();
    expect(reduceSessions(sessions, { type: "session.deleted", payload: { sessionId: "x" } }, 1)).toBe(
      sessions,
    );
  });
});
