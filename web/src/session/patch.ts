/** The agent's own patch of a finished edit. */
import { asArray, asNumber, asObjects, asString, type Json } from "../wire/json";

export interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** Where it stands in the file is known; otherwise its lines have no numbers. */
  readonly placed: boolean;
  readonly lines: readonly string[];
}

/** The hunks of a finished edit, if its result has any. */
export function hunksOfResult(details: Json | undefined): Hunk[] {
  return asObjects(details?.structuredPatch).map((hunk) => ({
    oldStart: asNumber(hunk.oldStart) ?? 1,
    newStart: asNumber(hunk.newStart) ?? 1,
    placed: true,
    lines: asArray(hunk.lines).flatMap((line) => asString(line) ?? []),
  }));
}

export interface TextEdit {
  readonly before: string;
  readonly after: string;
  /** Every occurrence is replaced, not only the first. */
  readonly everywhere: boolean;
}

/** What a call of Write puts into its file. */
export const contentOf = (input: Json): string | undefined =>
  asString(input.old_string) === undefined ? asString(input.content) : undefined;

/** The replacements that a call of Edit, MultiEdit, Write or NotebookEdit asks for. A new file replaces nothing. */
export function editsOf(input: Json): TextEdit[] {
  const whole = asString(input.content) ?? asString(input.new_source);
  if (whole !== undefined && asString(input.old_string) === undefined)
    return [{ before: "", after: whole, everywhere: false }];
  const listed = asObjects(input.edits);
  return (listed.length > 0 ? listed : [input]).map((edit) => ({
    before: asString(edit.old_string) ?? "",
    after: asString(edit.new_string) ?? "",
    everywhere: edit.replace_all === true,
  }));
}

export interface Changes {
  readonly added: number;
  readonly removed: number;
}

export function countChanges(hunks: readonly Hunk[]): Changes {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return {
    added: lines.filter((line) => line.startsWith("+")).length,
    removed: lines.filter((line) => line.startsWith("-")).length,
  };
}

/** What a finished edit changed. A new file has no patch: all of its lines are new. */
export function changesOf(input: Json, details: Json | undefined): Changes {
  const hunks = hunksOfResult(details);
  const content = asString(input.content);
  if (hunks.length > 0 || content === undefined) return countChanges(hunks);
  return { added: content.replace(/\n$/, "").split("\n").length, removed: 0 };
}
