import { describe, expect, it } from "vitest";
import type { SessionInfo } from "../../gen/events";
import type { Session } from "../../gen/history";
import { latestOf } from "./latest";

const at = (hour: number) => Date.parse(`2026-01-01T0${hour}:00:00Z`);
const session = (id: string, cwd: string, hour: number) =>
  ({ id, title: id, cwd, updatedAt: at(hour), claudeSessionId: `claude-${id}` }) as SessionInfo;
const conversation = (id: string, hour: number) =>
  ({ id, title: id, last_active: new Date(at(hour)).toISOString() }) as Session;

describe("the conversation that 'continue' means", () => {
  const sessions = [session("other", "/q", 9), session("own", "/p", 5), session("older", "/p", 3)];

  it("is the newest session of that folder", () => {
    expect(latestOf("/p/ ", sessions, undefined)).toMatchObject({ kind: "session", id: "own" });
    expect(latestOf("/nowhere", sessions, undefined)).toBeUndefined();
  });

  it("is one from a terminal if that is newer, or the only one", () => {
    expect(latestOf("/p", sessions, conversation("t", 6))).toMatchObject({ kind: "conversation", id: "t" });
    expect(latestOf("/p", sessions, conversation("t", 4))).toMatchObject({ id: "own" });
    expect(latestOf("/r", sessions, conversation("t", 1))).toMatchObject({ kind: "conversation" });
  });

  it("is the session itself where the history only tells of it", () => {
    expect(latestOf("/p", sessions, conversation("claude-own", 6))).toMatchObject({ id: "own" });
  });
});
