import { describe, expect, it } from "vitest";
import { changedWords, hunksOfInput, rowsOf, sideOf, spansOf, tokensByRow } from "./diff";
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

  it("have the numbers and the surroundings that the file gives them", () => {
    const file = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join("\n");
    const rows = rowsOf(hunksOfInput({ old_string: "line 10\nline 11", new_string: "line 10\nnew" }, file));
    expect(rows.map(({ text }) => text)).toEqual([
      "line 8",
      "line 9",
      "line 10",
      "line 11",
      "new",
      "line 12",
      "line 13",
      "line 14",
    ]);
    expect(rows.find(({ kind }) => kind === "removed")?.oldLine).toBe(11);
    expect(rows.find(({ kind }) => kind === "added")?.newLine).toBe(11);
  });

  it("claim no place that is not known", () => {
    for (const file of [undefined, null, "something else"]) {
      const rows = rowsOf(hunksOfInput({ old_string: "a", new_string: "b" }, file));
      expect(rows.map(({ kind, oldLine, newLine }) => [kind, oldLine, newLine])).toEqual([
        ["removed", undefined, undefined],
        ["added", undefined, undefined],
      ]);
    }
  });

  it("compare a file that is overwritten with what it was", () => {
    expect(lines(hunksOfInput({ content: "a\nc\n" }, "a\nb\n"))).toEqual([[" a", "-b", "+c"]]);
  });

  it("replace what is asked for: the first, or all, and `$&` is no pattern", () => {
    const all = hunksOfInput({ old_string: "x", new_string: "$&y", replace_all: true }, "x\nx\n");
    expect(lines(all)).toEqual([["-x", "-x", "+$&y", "+$&y"]]);
    const one = hunksOfInput({ old_string: "x", new_string: "y" }, "x\nz\nx\n");
    expect(lines(one)).toEqual([["-x", "+y", " z", " x"]]);
  });

  it("take the colours of each side", () => {
    const rows = rowsOf(hunksOfInput({ old_string: "a\nb\nz", new_string: "a\nc\nz" }));
    expect([sideOf(rows, "old"), sideOf(rows, "new")]).toEqual(["a\nb\nz", "a\nc\nz"]);
    const line = (text: string) => [{ text, color: text }];
    const tokens = tokensByRow(rows, ["a", "b", "z"].map(line), ["a", "c", "z"].map(line));
    expect(tokens.map((each) => each?.[0]?.text)).toEqual(["a", "b", "c", "z"]);
  });

  it("show which words of a line changed", () => {
    const rows = rowsOf(hunksOfInput({ old_string: "let name = one;", new_string: "let name = two;" }));
    const words = changedWords(rows);
    const [removed] = spansOf("let name = one;", undefined, words.get(0) ?? []).filter(
      ({ changed }) => changed,
    );
    expect(removed?.text).toBe("one");
    // Cut out of a token, with its colour.
    expect(spansOf("abcd", [{ text: "abcd", color: "red" }], [{ start: 1, end: 3 }])).toEqual([
      { text: "a", color: "red", changed: false },
      { text: "bc", color: "red", changed: true },
      { text: "d", color: "red", changed: false },
    ]);
  });

  it("don't compare lines that have nothing to do with each other", () => {
    const rows = rowsOf(hunksOfInput({ old_string: "import a from b", new_string: "export const x = 5" }));
    expect(changedWords(rows).size).toBe(0);
  });
});
