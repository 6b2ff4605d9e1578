import { describe, expect, it } from "vitest";
import { findingsOf, rowOf } from "./findings";
import type { Row } from "./rows";

const item = (key: string, seqs: number[], toolUseId?: string) =>
  ({
    kind: "item",
    key,
    item: toolUseId
      ? { kind: "tool", key, seqs, toolUseId }
      : { kind: "text", key, seqs, text: "", live: false },
    children: [],
  }) as unknown as Row;

describe("findings", () => {
  it("count a tool call and its result once", () => {
    const found = [{ seq: 1 }, { seq: 3, toolUseId: "t" }, { seq: 4, toolUseId: "t" }, { seq: 9 }];
    expect(findingsOf(found).map(({ seq }) => seq)).toEqual([1, 3, 9]);
  });

  it("have their row by number or by call, and none where nothing is loaded", () => {
    const rows = [item("hp1", [1]), item("a", [1]), item("t", [3, 4], "t")];
    expect(rowOf(rows, { seq: 1 })).toBe(1);
    expect(rowOf(rows, { seq: 7, toolUseId: "t" })).toBe(2);
    expect(rowOf(rows, { seq: 8 })).toBe(-1);
  });
});
