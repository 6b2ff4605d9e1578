import { describe, expect, it } from "vitest";
import type { ServerEvent, SessionInfo } from "../gen/events";
import { occasionOf } from "./notify";

const running = { id: "s", status: "running" } as SessionInfo;
const status = (value: string) =>
  ({ type: "session.status", payload: { sessionId: "s", status: value, seq: 2 } }) as ServerEvent;

describe("what is worth a notification", () => {
  it("is a decision, and the end of a turn that ran", () => {
    expect(
      occasionOf({ type: "permission.request", payload: { sessionId: "s" } } as ServerEvent, running),
    ).toBe("waiting");
    expect(occasionOf(status("completed"), running)).toBe("completed");
    expect(occasionOf(status("error"), running)).toBe("error");
  });

  it("is not what the user did, or what a replay says again", () => {
    expect(occasionOf(status("idle"), running)).toBeUndefined();
    expect(occasionOf(status("completed"), { ...running, status: "completed" })).toBeUndefined();
    expect(occasionOf(status("completed"), undefined)).toBeUndefined();
  });
});
