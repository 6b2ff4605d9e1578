import { describe, expect, it } from "vitest";
import {
  baseName,
  formatAge,
  formatClock,
  formatCost,
  formatDuration,
  formatMilliseconds,
  relativePath,
  shellQuote,
} from "./format";

const now = Date.UTC(2026, 10, 15, 12);

describe("formatAge", () => {
  it.each([
    [5_000, "now"],
    [5 * 60_000, "5m ago"],
    [3 * 3_600_000, "3h ago"],
    [9 * 86_400_000, "Nov 6"],
  ])("says how long %i ms ago is", (age, words) => {
    expect(formatAge(now - age, now, "en")).toBe(words);
  });

  it("never speaks of the future when clocks differ", () => {
    expect(formatAge(now + 90_000, now, "en")).toBe("now");
  });
});

describe("formatDuration", () => {
  it.each([
    [640, "0.6s"],
    [12_345, "12s"],
    [125_000, "2m 5s"],
    [9_960, "10s"],
    [59_700, "1m 0s"],
    [119_800, "2m 0s"],
    [3_599_900, "1h 0m"],
    [4_500_000, "1h 15m"],
  ])("says %i ms", (ms, words) => {
    expect(formatDuration(ms, "en")).toBe(words);
  });

  it("runs in whole seconds where it is a clock", () => {
    expect([0, 999, 1_000, 59_999, 60_000].map((ms) => formatClock(ms, "en"))).toEqual([
      "0s",
      "0s",
      "1s",
      "59s",
      "1m 0s",
    ]);
    expect(formatClock(-50, "en")).toBe("0s");
  });

  it("is there to the millisecond", () => {
    expect(formatMilliseconds(12_345.6, "en")).toBe("12,346 ms");
  });
});

describe("formatCost", () => {
  it.each([
    [0, "$0.00"],
    [0.0012, "$0.0012"],
    [0.023, "$0.023"],
    [12.5, "$12.50"],
  ])("says %f", (usd, words) => {
    expect(formatCost(usd, "en")).toBe(words);
  });
});

describe("paths", () => {
  it("names a folder by its last part", () => {
    expect(baseName("/home/ada/project/")).toBe("project");
    expect(baseName("/")).toBe("/");
  });

  it("shortens only what lies inside the folder", () => {
    expect(relativePath("/home/ada/project/src/a.rs", "/home/ada/project")).toBe("src/a.rs");
    expect(relativePath("/home/ada/project-two/a.rs", "/home/ada/project")).toBe(
      "/home/ada/project-two/a.rs",
    );
  });

  it("quotes for a shell what a shell would split or expand", () => {
    expect(shellQuote("/home/ada/project")).toBe("/home/ada/project");
    expect(shellQuote("/home/ada/it's $HOME")).toBe(`'/home/ada/it'\\''s $HOME'`);
  });
});
