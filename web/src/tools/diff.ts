/** Differences as rows. From the agent's own patch where there is one, else computed from what it wants to change. */
import { structuredPatch } from "diff";
import { editsOf, type Hunk } from "../session/patch";
import type { Json } from "../wire/json";

export interface DiffRow {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
  readonly oldLine: number | undefined;
  readonly newLine: number | undefined;
}

/** The hunks that a call of Edit, MultiEdit or Write would make, as far as its input tells. */
export function hunksOfInput(input: Json): Hunk[] {
  return editsOf(input).flatMap(({ before, after }) => hunksBetween(before, after));
}

export function hunksBetween(before: string, after: string): Hunk[] {
  return structuredPatch("", "", before, after, "", "", { context: 3 }).hunks.map((hunk) => ({
    oldStart: hunk.oldStart,
    newStart: hunk.newStart,
    // The remark about a missing newline at the end of a file is no line of it.
    lines: hunk.lines.filter((line) => !line.startsWith("\\")),
  }));
}

export function rowsOf(hunks: readonly Hunk[]): DiffRow[] {
  return hunks.flatMap((hunk, index) => {
    const rows = hunkRows(hunk);
    return index === 0 ? rows : [{ kind: "gap", text: "", oldLine: undefined, newLine: undefined }, ...rows];
  });
}

function hunkRows(hunk: Hunk): DiffRow[] {
  let oldLine = hunk.oldStart;
  let newLine = hunk.newStart;
  return hunk.lines.map((line): DiffRow => {
    const text = line.slice(1);
    if (line.startsWith("+")) return { kind: "added", text, oldLine: undefined, newLine: newLine++ };
    if (line.startsWith("-")) return { kind: "removed", text, oldLine: oldLine++, newLine: undefined };
    return { kind: "same", text, oldLine: oldLine++, newLine: newLine++ };
  });
}
