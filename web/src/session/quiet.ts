/** Calls that only look at something, gathered into one row: a dozen files that were read are one step for a reader. Pure. */
import { relativePath } from "../lib/format";
import { familyOf } from "./describe";
import type { ToolItem } from "./items";
import type { ItemRow, Row } from "./rows";
import { pathOf } from "./toolCalls";

/** A row of a quiet tool call. */
export type QuietRow = ItemRow & { item: ToolItem };

/** Fewer are shown as they are. */
const FEWEST = 2;

/**
 * Puts neighbouring quiet calls together. What waits, failed or was refused stays a row of its own, and nothing is joined
 * across rows whose `stretch` differs.
 */
export function groupQuiet(rows: readonly Row[], stretch: (row: Row) => unknown = () => undefined): Row[] {
  const grouped: Row[] = [];
  let run: QuietRow[] = [];
  const flush = () => {
    const [first] = run;
    if (first && run.length >= FEWEST) grouped.push({ kind: "group", key: `g${first.key}`, rows: run });
    else grouped.push(...run);
    run = [];
  };
  for (const row of rows) {
    if (!isQuiet(row)) {
      flush();
      grouped.push(row);
      continue;
    }
    if (run[0] && stretch(run[0]) !== stretch(row)) flush();
    run.push(row);
  }
  flush();
  return grouped;
}

function isQuiet(row: Row): row is QuietRow {
  if (row.kind !== "item" || row.item.kind !== "tool" || row.decision || row.children.length > 0)
    return false;
  if (row.decided?.behavior === "deny" || row.decided?.behavior === "withdrawn") return false;
  const { phase, name, images } = row.item;
  // A picture that was looked at is worth seeing.
  if (phase === "error" || phase === "stopped" || (images && images.length > 0)) return false;
  const family = familyOf(name);
  return family === "read" || family === "search" || family === "web";
}

export interface QuietSummary {
  /** How many different files. */
  readonly read: number;
  readonly search: number;
  readonly web: number;
  /** What was looked at, in order, each once. */
  readonly subjects: readonly string[];
  /** The call that is at work. */
  readonly running: ToolItem | undefined;
}

export function summarizeQuiet(rows: readonly QuietRow[], cwd: string | undefined): QuietSummary {
  const calls = rows.map((row) => row.item);
  const files = new Set<string>();
  let unnamed = 0;
  let search = 0;
  let web = 0;
  for (const call of calls) {
    const family = familyOf(call.name);
    if (family === "search") search += 1;
    else if (family === "web") web += 1;
    else {
      const path = pathOf(call.input);
      if (path === undefined) unnamed += 1;
      else files.add(relativePath(path, cwd));
    }
  }
  return {
    read: files.size + unnamed,
    search,
    web,
    subjects: [...files],
    running: calls.findLast(({ phase }) => phase === "running" || phase === "writing"),
  };
}
