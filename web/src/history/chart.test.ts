import { describe, expect, it } from "vitest";
import type { UsageRow } from "../gen/history";
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
    expect(barsOf([row("2026-02-27", 1), row("2026-03-02", 4)])).toEqual([
      { day: "2026-02-27", cost: 1, height: 0.25 },
      { day: "2026-02-28", cost: 0, height: 0 },
      { day: "2026-03-01", cost: 0, height: 0 },
      { day: "2026-03-02", cost: 4, height: 1 },
    ]);
  });

  it("are at most ninety, and none where there is nothing", () => {
    expect(barsOf([row("2025-01-01", 1), row("2026-01-01", 0)])).toHaveLength(90);
    expect(barsOf([])).toEqual([]);
    expect(barsOf([row("2026-01-01", 0)])[0]?.height).toBe(0);
  });
});
