import { describe, expect, it } from "vitest";
import type { SessionInfo } from "../gen/events";
import { nextInQueue, queueAfter, total, waitingIn } from "./queue";

const session = (id: string, updatedAt: number, pending = 0, rest: Partial<SessionInfo> = {}) =>
  [id, { id, updatedAt, pending, ...rest } as SessionInfo] as const;

describe("what needs the user", () => {
  const sessions = new Map([
    session("new", 30, 1),
    session("calm", 20),
    session("old", 10, 2, { archived: true }),
    session("called", 15),
    session("going", 5, 1),
    session("discarded", 1, 1, { deleteAt: 99 }),
  ]);
  const calls = [{ sessionId: "called" }, { sessionId: "called" }, { sessionId: "unknown" }];
  const found = waitingIn({ sessions, leaving: new Set(["going"]) }, calls);

  it("is everything that waits and stays, the oldest first", () => {
    expect(found).toEqual([
      { id: "old", count: 2, since: 10 },
      { id: "called", count: 2, since: 15 },
      { id: "new", count: 1, since: 30 },
    ]);
    expect(total(found)).toBe(5);
  });

  it("keeps its order when counts change and more happens in a session, and takes in who waited longer", () => {
    const next = queueAfter(found, [
      { id: "older", count: 1, since: 12 },
      { id: "latest", count: 1, since: 99 },
      { id: "new", count: 3, since: 31 },
      { id: "old", count: 2, since: 95 },
    ]);
    expect(next).toEqual([
      { id: "old", count: 2, since: 10 },
      { id: "older", count: 1, since: 12 },
      { id: "new", count: 3, since: 30 },
      { id: "latest", count: 1, since: 99 },
    ]);
  });

  it("is the same while nothing changes", () => {
    expect(queueAfter(found, found.toReversed())).toBe(found);
  });

  it("is walked round and round, from anywhere, either way", () => {
    expect(nextInQueue(found, undefined, 1)).toBe("old");
    expect(nextInQueue(found, undefined, -1)).toBe("new");
    expect(nextInQueue(found, "calm", 1)).toBe("old");
    expect(nextInQueue(found, "old", 1)).toBe("called");
    expect(nextInQueue(found, "new", 1)).toBe("old");
    expect(nextInQueue(found, "old", -1)).toBe("new");
    expect(nextInQueue(found.slice(0, 1), "old", 1)).toBe("old");
    expect(nextInQueue([], "old", 1)).toBeUndefined();
  });
});
