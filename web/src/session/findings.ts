/** Where words were found, as places in the list of a conversation. Pure. */
import type { FoundEntry } from "../gen/events";
import type { Item } from "./items";
import type { Row } from "./rows";

export interface Finding {
  readonly seq: number;
  readonly toolUseId?: string;
}

/** A tool call and its result are one card: what is found in both is one finding. */
export function findingsOf(matches: readonly FoundEntry[]): Finding[] {
  const cards = new Set<string>();
  return matches.filter(({ toolUseId }) => {
    if (toolUseId === undefined) return true;
    if (cards.has(toolUseId)) return false;
    cards.add(toolUseId);
    return true;
  });
}

/** The row that shows a finding; -1 if it is not loaded, or not shown. */
export function rowOf(rows: readonly Row[], finding: Finding): number {
  const has = (item: Item) =>
    item.seqs.includes(finding.seq) ||
    (item.kind === "tool" && finding.toolUseId !== undefined && item.toolUseId === finding.toolUseId);
  return rows.findIndex((row) => {
    // Rows of the transcript are numbered on their own.
    if (row.key.startsWith("h")) return false;
    if (row.kind === "item") return has(row.item) || row.children.some(has);
    return row.kind === "group" && row.rows.some(({ item }) => has(item));
  });
}
