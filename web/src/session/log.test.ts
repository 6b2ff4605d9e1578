import { describe, expect, it } from "vitest";
import {
  ask,
  acceptEvents,
  acceptHistory,
  acceptRefusal,
  hasOlder,
  isAsked,
  isAsking,
  isLoading,
  markSent,
  openLog,
  type SequencedEvent,
  type SessionLog,
} from "./log";

const sessionId = "s";
const prompt = (seq: number): SequencedEvent => ({
  type: "stream.user_prompt",
  payload: { sessionId, seq, prompt: `p${seq}`, promptId: `u${seq}`, uuid: `u${seq}` },
});
const status = (seq: number): SequencedEvent => ({
  type: "session.status",
  payload: { sessionId, seq, status: "running" },
});
const request = (seq: number, requestId: string, toolName = "Bash"): SequencedEvent => ({
  type: "permission.request",
  payload: { sessionId, seq, requestId, toolUseId: `t-${requestId}`, toolName, input: {}, shown: "" },
});
const resolved = (seq: number, requestId: string): SequencedEvent => ({
  type: "permission.resolved",
  payload: { sessionId, seq, requestId, toolUseId: `t-${requestId}`, behavior: "deny" },
});
const history = (seqs: readonly number[], lastSeq: number) => ({
  sessionId,
  status: "idle" as const,
  seqs: [...seqs],
  messages: seqs.map((seq) => ({ type: "user_prompt", prompt: `p${seq}` })),
  kinds: seqs.map(() => "user_prompt" as const),
  lastSeq,
  pending: [],
  queue: [],
  queueItems: [],
});
const shown = (log: SessionLog) =>
  log.transcript.items.map((item) => (item.kind === "prompt" ? item.text : item.kind));

describe("the window", () => {
  it("takes events in order, once", () => {
    const log = acceptEvents(openLog(0, 0), [prompt(1), prompt(2), prompt(2), prompt(1)]);
    expect(shown(acceptEvents(log, [prompt(2), prompt(3)]))).toEqual(["p1", "p2", "p3"]);
  });

  it("sorts a batch in which replay and live stream are mixed", () => {
    expect(shown(acceptEvents(openLog(0, 0), [prompt(3), prompt(1), prompt(2)]))).toEqual(["p1", "p2", "p3"]);
  });

  it("counts what it does not show", () => {
    expect(shown(acceptEvents(openLog(0, 0), [status(1), request(2, "r"), prompt(3)]))).toEqual(["p3"]);
  });

  it("is loading until it reaches what was there when it was opened", () => {
    const log = acceptEvents(openLog(10, 12), [prompt(11)]);
    expect(isLoading(log)).toBe(true);
    expect(isLoading(acceptEvents(log, [prompt(12)]))).toBe(false);
  });
});

describe("a gap", () => {
  it("holds back what comes too early until the replay has filled it", () => {
    const early = acceptEvents(openLog(0, 0), [prompt(1), prompt(4)]);
    expect(shown(early)).toEqual(["p1"]);
    expect(early.held).toHaveLength(1);
    const filled = acceptEvents(early, [prompt(2), prompt(3), prompt(4)]);
    expect(shown(filled)).toEqual(["p1", "p2", "p3", "p4"]);
    expect(filled.held).toHaveLength(0);
  });

  it("is filled by history, and what the server no longer has is not waited for", () => {
    const early = ask(acceptEvents(openLog(0, 0), [prompt(1), prompt(5)]), "c1", "repair");
    const repaired = acceptHistory(early, history([3], 5), "c1");
    expect(shown(repaired)).toEqual(["p1", "p3", "p5"]);
    expect(repaired).toMatchObject({ last: 5, asked: new Map(), held: [] });
  });
});

describe("older pages", () => {
  const opened = ask(acceptEvents(openLog(4, 6), [prompt(5), prompt(6)]), "c1", "older");

  it("are put in front", () => {
    const log = acceptHistory(opened, history([3, 4], 6), "c1");
    expect(shown(log)).toEqual(["p3", "p4", "p5", "p6"]);
    expect(log).toMatchObject({ first: 3, asked: new Map() });
    expect(hasOlder(log)).toBe(true);
  });

  it("end when there is nothing more", () => {
    expect(hasOlder(acceptHistory(opened, history([], 6), "c1"))).toBe(false);
  });

  it("do not double what is known", () => {
    expect(shown(acceptHistory(opened, history([4, 5, 6], 6), "c1"))).toEqual(["p4", "p5", "p6"]);
  });
});

describe("answers of history", () => {
  const asked = ask(ask(openLog(4, 4), "c1", "summary"), "c2", "older");

  it("are taken for what they were asked for, in whatever order they come", () => {
    const older = acceptHistory(asked, history([3, 4], 4), "c2");
    expect(shown(older)).toEqual(["p3", "p4"]);
    const summary = acceptHistory(older, history([4], 4), "c1");
    expect([shown(summary), summary.asked.size]).toEqual([["p3", "p4"], 0]);
  });

  it("change nothing that is shown if this page did not ask", () => {
    const log = acceptHistory(acceptHistory(asked, history([3], 4), "cx"), history([3], 4), undefined);
    expect([shown(log), log.asked.size]).toEqual([[], 2]);
  });

  it("may be refused, and can then be asked for again", () => {
    const refused = acceptRefusal(asked, "c2", "invalid_request");
    expect([isAsked(refused, "older"), isAsked(refused, "summary")]).toEqual([false, true]);
  });

  it("tell what waits, however old it is", () => {
    const { payload } = request(2, "r1");
    if (!("input" in payload)) throw new Error("not a request");
    const log = acceptHistory(
      ask(openLog(10, 10), "c1", "summary"),
      {
        ...history([], 10),
        pending: [payload],
        queue: ["next"],
        queueItems: [{ promptId: "q", prompt: "next" }],
      },
      "c1",
    );
    expect([...log.decisions.keys()]).toEqual(["r1"]);
    expect(log.queue).toEqual([{ promptId: "q", prompt: "next" }]);
  });
});

describe("decisions", () => {
  it("wait until they are resolved", () => {
    const log = acceptEvents(openLog(0, 0), [request(1, "r1"), request(2, "r2")]);
    expect([...log.decisions.keys()]).toEqual(["r1", "r2"]);
    const answered = acceptEvents(markSent(log, "r1", "c1", { behavior: "deny" }), [resolved(3, "r1")]);
    expect([...answered.decisions.keys()]).toEqual(["r2"]);
    expect(answered.decided.get("t-r1")).toMatchObject({ behavior: "deny" });
  });

  it("are raised even when they lie before the window, and not again once resolved", () => {
    const log = acceptEvents(openLog(10, 10), [request(3, "r1")]);
    expect(log.decisions.has("r1")).toBe(true);
    const done = acceptEvents(log, [resolved(11, "r1"), request(3, "r1")]);
    expect(done.decisions.has("r1")).toBe(false);
  });
});

describe("a question", () => {
  it("is open from being asked until its answer has arrived", () => {
    const log = acceptEvents(openLog(0, 0), [request(1, "p"), request(2, "q", "AskUserQuestion")]);
    expect(isAsking(log)).toBe(true);
    expect(isAsking(markSent(log, "q", "c1", { behavior: "allow" }))).toBe(true);
    expect(isAsking(acceptEvents(log, [resolved(3, "q")]))).toBe(false);
    expect(isAsking(undefined)).toBe(false);
  });
});

describe("the queue", () => {
  it("gives up a prompt when that one is sent, not one with the same words", () => {
    const queue = [
      { promptId: "u2", prompt: "p1" },
      { promptId: "u1", prompt: "p1" },
    ];
    const log = acceptEvents({ ...openLog(0, 0), queue }, [prompt(1)]);
    expect(log.queue).toEqual([{ promptId: "u2", prompt: "p1" }]);
  });
});
