import { describe, expect, it } from "vitest";
import { problemOf, sizeOf } from "./images";

describe("images", () => {
  it.each([
    [{ type: "image/png", size: 10 }, [], undefined],
    [{ type: "image/svg+xml", size: 10 }, [], "type"],
    [{ type: "image/png", size: (5 << 20) + 1 }, [], "size"],
    [{ type: "image/webp", size: 10 }, Array.from({ length: 20 }, () => 1), "count"],
    [{ type: "image/png", size: 2 << 20 }, [5 << 20, 5 << 20, 5 << 20, 5 << 20], undefined],
    [{ type: "image/png", size: (2 << 20) + 1 }, [5 << 20, 5 << 20, 5 << 20, 5 << 20], "total"],
  ])("%j after %j: %s", (file, already, problem) => {
    expect(problemOf(file, already)).toBe(problem);
  });

  it("have the size of their file", () => {
    expect(sizeOf({ mediaType: "image/png", data: btoa("123456") })).toBe(6);
  });
});
