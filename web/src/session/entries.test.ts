import { describe, expect, it } from "vitest";
import { messageEntry, promptEntry, timeOf } from "./entries";

describe("the time of an entry", () => {
  const entries = [promptEntry(2, { prompt: "a" }, 20), messageEntry(5, {}, 50), messageEntry(9, {})];

  it.each([
    [2, 20],
    [5, 50],
    [9, undefined],
    [3, undefined],
    [undefined, undefined],
  ])("%s", (seq, at) => {
    expect(timeOf(entries, seq)).toBe(at);
  });
});
