import { describe, expect, it } from "vitest";
import { currentLimits, limitsOf, readQuota, withLimits } from "./quota";

const report = (five: number, resetsAt: number, more: Record<string, unknown> = {}) => ({
  type: "rate_limit_event",
  rate_limit_info: {
    status: "allowed",
    rateLimitType: "five_hour",
    resetsAt,
    unifiedWindows: {
      five_hour: { utilization: five, resetsAt },
      seven_day: { utilization: 0.5, resetsAt: 9_000 },
    },
    ...more,
  },
});

describe("limits", () => {
  it("are those of all windows that the agent names", () => {
    expect(limitsOf(report(0.93, 100))).toEqual([
      { name: "five_hour", used: 0.93, resetsAt: 100_000 },
      { name: "seven_day", used: 0.5, resetsAt: 9_000_000 },
    ]);
    expect(limitsOf({ type: "assistant" })).toEqual([]);
    expect(
      limitsOf({ type: "rate_limit_event", rate_limit_info: { unifiedWindows: { five_hour: 3 } } }),
    ).toEqual([]);
  });

  it("that were reached are used up", () => {
    const [five] = limitsOf(report(0.93, 100, { status: "rejected" }));
    expect(five).toMatchObject({ name: "five_hour", used: 1 });
    const old = { status: "rejected", rateLimitType: "seven_day", resetsAt: 5 };
    expect(limitsOf({ type: "rate_limit_event", rate_limit_info: old })).toEqual([
      { name: "seven_day", used: 1, resetsAt: 5_000 },
    ]);
  });

  it("are the newest, in whatever order the reports are read", () => {
    const early = limitsOf(report(0.2, 100));
    const late = limitsOf(report(0.6, 100));
    const next = limitsOf(report(0.1, 200));
    for (const order of [
      [early, late, next],
      [next, late, early],
    ]) {
      const quota = order.reduce(withLimits, []);
      expect(quota).toContainEqual({ name: "five_hour", used: 0.1, resetsAt: 200_000 });
    }
    const quota = withLimits(late, early);
    expect(quota).toBe(late);
    expect(currentLimits(quota, 100_001)).toMatchObject([{ name: "seven_day" }]);
  });

  it("survive a page, and nothing that was spoilt", () => {
    const quota = limitsOf(report(0.2, 100));
    expect(readQuota(JSON.stringify(quota))).toEqual(quota);
    for (const spoilt of [undefined, "", "{", "3", '[{"name":1}]']) expect(readQuota(spoilt)).toEqual([]);
  });
});
