import { describe, expect, it } from "vitest";
import { problemOf } from "./images";

describe("images", () => {
  it.each([
    [{ type: "image/png", size: 10 }, 0, undefined],
    [{ type: "image/svg+xml", size: 10 }, 0, "type"],
    [{ type: "image/png", size: (5 << 20) + 1 }, 0, "size"],
    [{ type: "image/webp", size: 10 }, 20, "count"],
  ])("%j after %i: %s", (file, already, problem) => {
    expect(problemOf(file, already)).toBe(problem);
  });
});
