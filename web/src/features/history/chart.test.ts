import { describe, expect, it } from "vitest";
import type { UsageRow } from "../../gen/history";
import { barsOf } from "./chart";

const row = (key: string, cost_usd: number): UsageRow => ({
  key,
  cost_usd,
  messages: 1,
  input_tokens: 0,
  output_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_creation_1h_input_tokens: 0,
  cache_read_input_tokens: 0,
});

describe("the bars of a chart", () => {
  it("have no gaps between days", () => {
    expect(barsOf([row("2026-02-25", 1), row("2026-03-02", 4)], undefined, "2026-03-03")).toEqual([
      { day: "2026-02-25", cost: 1, height: 0.25 },
      { day: "2026-02-26", cost: 0, height: 0 },
      { day: "2026-02-27", cost: 0, height: 0 },
      { day: "2026-02-28", cost: 0, height: 0 },
      { day: "2026-03-01", cost: 0, height: 0 },
      { day: "2026-03-02", cost: 4, height: 1 },
      { day: "2026-03-03", cost: 0, height: 0 },
    ]);
  });

  it("fill the period that was chosen, and end with the newest day", () => {
    const bars = barsOf([row("2026-03-02", 4)], 30, "2026-03-01");
    expect(bars).toHaveLength(30);
    expect(bars[0]).toEqual({ day: "2026-02-01", cost: 0, height: 0 });
    expect(bars.at(-1)).toEqual({ day: "2026-03-02", cost: 4, height: 1 });
  });

  it("are at most ninety, and none where there is nothing", () => {
    expect(barsOf([row("2025-01-01", 1), row("2026-01-01", 0)], undefined, "2026-01-01")).toHaveLength(90);
    expect(barsOf([], 30, "2026-01-01")).toEqual([]);
    expect(barsOf([row("2026-01-01", 0)], 1, "2026-01-01").at(-1)?.height).toBe(0);
  });
});
