import { describe, expect, it } from "vitest";
import { hunksOfInput, rowsOf } from "./diff";
import { countChanges, hunksOfResult } from "../session/patch";

const lines = (hunks: ReturnType<typeof hunksOfInput>) => hunks.map((hunk) => hunk.lines);

describe("differences", () => {
  it("come from the agent's own patch", () => {
    const hunks = hunksOfResult({
      structuredPatch: [{ oldStart: 3, oldLines: 2, newStart: 3, newLines: 2, lines: [" a", "-b", "+c"] }],
    });
    expect(rowsOf(hunks)).toEqual([
      { kind: "same", text: "a", oldLine: 3, newLine: 3 },
      { kind: "removed", text: "b", oldLine: 4, newLine: undefined },
      { kind: "added", text: "c", oldLine: undefined, newLine: 4 },
    ]);
    expect(countChanges(hunks)).toEqual({ added: 1, removed: 1 });
    expect(hunksOfResult(undefined)).toEqual([]);
  });

  it("are computed for an edit that waits for approval", () => {
    expect(lines(hunksOfInput({ old_string: "a\nb", new_string: "a\nc" }))).toEqual([[" a", "-b", "+c"]]);
  });

  it("show a new file as added", () => {
    expect(lines(hunksOfInput({ file_path: "/x", content: "a\nb\n" }))).toEqual([["+a", "+b"]]);
  });

  it("join several edits, with a gap between them", () => {
    const hunks = hunksOfInput({
      edits: [
        { old_string: "a", new_string: "b" },
        { old_string: "c", new_string: "d" },
      ],
    });
    expect(rowsOf(hunks).map((row) => row.kind)).toEqual(["removed", "added", "gap", "removed", "added"]);
  });
});
