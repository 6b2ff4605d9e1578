import { describe, expect, it } from "vitest";
import { baseName, formatAge, formatCost, formatDuration, relativePath, shellQuote } from "./format";

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
  ])("says %i ms", (ms, words) => {
    expect(formatDuration(ms, "en")).toBe(words);
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
