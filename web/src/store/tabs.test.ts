import { describe, expect, it } from "vitest";
import { neighbourOf, withTab } from "./tabs";

describe("tabs", () => {
  it("stay in their place, and new ones come last", () => {
    expect(withTab(["a", "b"], "a")).toEqual(["a", "b"]);
    expect(withTab(["a", "b"], "c")).toEqual(["a", "b", "c"]);
  });

  it("make room when there are many", () => {
    const many = Array.from({ length: 24 }, (_, index) => `${index}`);
    expect(withTab(many, "new").at(-1)).toBe("new");
    expect(withTab(many, "new")).toHaveLength(24);
  });

  it("give way to the next, or to the one before", () => {
    expect(neighbourOf(["a", "b", "c"], "b")).toBe("c");
    expect(neighbourOf(["a", "b"], "b")).toBe("a");
    expect(neighbourOf(["a"], "a")).toBeUndefined();
  });
});
