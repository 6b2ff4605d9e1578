/** Differences as rows. From the agent's own patch where there is one, else computed from what it wants to change. Pure. */
import { diffWordsWithSpace, structuredPatch } from "diff";
import type { Token, TokenLine } from "../markdown/highlight";
import { contentOf, editsOf, type Hunk } from "../session/patch";
import type { Json } from "../wire/json";

export interface DiffRow {
  readonly kind: "same" | "added" | "removed" | "gap";
  readonly text: string;
  readonly oldLine: number | undefined;
  readonly newLine: number | undefined;
}

/** Lines around a change. */
const CONTEXT = 3;

/**
 * The hunks that a call of Edit, MultiEdit or Write would make. `file` is what it would change: undefined if that is not known,
 * null if there is no such file. Where the place of an edit is not known, its lines have no numbers.
 */
export function hunksOfInput(input: Json, file?: string | null): Hunk[] {
  const whole = contentOf(input);
  if (whole !== undefined) return hunksBetween(file ?? "", whole);
  const after = typeof file === "string" ? edited(file, input) : undefined;
  if (typeof file === "string" && after !== undefined) return hunksBetween(file, after);
  return editsOf(input).flatMap(({ before, after: text }) =>
    hunksBetween(before, text).map((hunk) => ({ ...hunk, placed: false })),
  );
}

/** The file after the edits; undefined if one of them does not fit. */
function edited(file: string, input: Json): string | undefined {
  let text = file;
  for (const { before, after, everywhere } of editsOf(input)) {
    if (before === "" || !text.includes(before)) return undefined;
    // A function, because a string would take `$&` and the like for something else.
    text = everywhere ? text.replaceAll(before, () => after) : text.replace(before, () => after);
  }
  return text;
}

export function hunksBetween(before: string, after: string): Hunk[] {
  return structuredPatch("", "", before, after, "", "", { context: CONTEXT }).hunks.map((hunk) => ({
    oldStart: hunk.oldStart,
    newStart: hunk.newStart,
    placed: true,
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

function hunkRows({ oldStart, newStart, placed, lines }: Hunk): DiffRow[] {
  let oldLine = oldStart;
  let newLine = newStart;
  return lines.map((line): DiffRow => {
    const text = line.slice(1);
    const numbers = { oldLine: placed ? oldLine : undefined, newLine: placed ? newLine : undefined };
    if (!line.startsWith("+")) oldLine += 1;
    if (!line.startsWith("-")) newLine += 1;
    if (line.startsWith("+")) return { kind: "added", text, ...numbers, oldLine: undefined };
    if (line.startsWith("-")) return { kind: "removed", text, ...numbers, newLine: undefined };
    return { kind: "same", text, ...numbers };
  });
}

/** The text of one side, for the highlighter, which needs the lines together. */
export const sideOf = (rows: readonly DiffRow[], side: "old" | "new"): string =>
  rows
    .filter(({ kind }) => kind !== (side === "old" ? "added" : "removed"))
    .map(({ text }) => text)
    .join("\n");

/** The coloured lines of both sides, row by row. */
export function tokensByRow(
  rows: readonly DiffRow[],
  old: readonly TokenLine[] | undefined,
  current: readonly TokenLine[] | undefined,
): (TokenLine | undefined)[] {
  let oldAt = 0;
  let newAt = 0;
  return rows.map(({ kind }) => {
    const before = kind === "added" ? undefined : old?.[oldAt++];
    const after = kind === "removed" ? undefined : current?.[newAt++];
    return after ?? before;
  });
}

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Longer lines, and those that have little in common, are changed as a whole. */
const LONGEST_COMPARED = 400;
const LEAST_COMMON = 0.4;

/** What changed within lines that replace one another, by row. */
export function changedWords(rows: readonly DiffRow[]): Map<number, Range[]> {
  const changed = new Map<number, Range[]>();
  for (let at = 0; at < rows.length; at += 1) {
    if (rows[at]?.kind !== "removed") continue;
    const first = at;
    while (rows[at]?.kind === "removed") at += 1;
    const middle = at;
    while (rows[at]?.kind === "added") at += 1;
    // As many in as out: each took the place of one.
    if (at - middle === middle - first)
      for (let index = first; index < middle; index += 1)
        compareLines(index, index + middle - first, rows, changed);
    at -= 1;
  }
  return changed;
}

function compareLines(
  oldRow: number,
  newRow: number,
  rows: readonly DiffRow[],
  changed: Map<number, Range[]>,
): void {
  const before = rows[oldRow]?.text ?? "";
  const after = rows[newRow]?.text ?? "";
  if (Math.max(before.length, after.length) > LONGEST_COMPARED) return;
  const removed: Range[] = [];
  const added: Range[] = [];
  let [oldAt, newAt, common] = [0, 0, 0];
  for (const part of diffWordsWithSpace(before, after)) {
    const { length } = part.value;
    if (part.removed) removed.push({ start: oldAt, end: (oldAt += length) });
    else if (part.added) added.push({ start: newAt, end: (newAt += length) });
    else {
      oldAt += length;
      newAt += length;
      common += part.value.trim().length;
    }
  }
  if (common < LEAST_COMMON * Math.min(before.trim().length, after.trim().length)) return;
  changed.set(oldRow, removed);
  changed.set(newRow, added);
}

export interface Span extends Token {
  readonly changed: boolean;
}

/** A line in its colours, cut where something that changed begins or ends. */
export function spansOf(text: string, tokens: TokenLine | undefined, ranges: readonly Range[]): Span[] {
  const coloured = tokens ?? [{ text, color: "inherit" }];
  const spans: Span[] = [];
  let at = 0;
  for (const token of coloured) {
    const end = at + token.text.length;
    const cuts = [at, ...ranges.flatMap((range) => [range.start, range.end]), end]
      .filter((cut) => cut >= at && cut <= end)
      .toSorted((a, b) => a - b);
    for (let index = 1; index < cuts.length; index += 1) {
      const [start = at, stop = end] = [cuts[index - 1], cuts[index]];
      if (stop === start) continue;
      spans.push({
        text: token.text.slice(start - at, stop - at),
        color: token.color,
        changed: ranges.some((range) => start >= range.start && stop <= range.end),
      });
    }
    at = end;
  }
  return spans;
}
