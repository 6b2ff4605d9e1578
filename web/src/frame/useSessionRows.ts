import { useMemo } from "react";
import { placementOf } from "../session/arrangement";
import { filterSessions, type SessionFilter } from "../store/filter";
import { useFolded } from "../store/folded";
import { useApp, useSessionList } from "../store/hooks";
import { useQueue } from "../store/queue";
import { type ListRow, rowsOf, sectionsOf } from "../store/sections";
import { useSeenState } from "../store/seen";

/** The rows of the list: in sections, or what was looked for, the last changed first. `any`: there are sessions at all. */
export function useSessionRows(
  filter: SessionFilter,
  words: string,
  whole: ReadonlySet<string>,
  current: string | undefined,
): { rows: readonly ListRow[]; any: boolean } {
  const all = useSessionList();
  const arrangement = useApp((state) => state.arrangement);
  const queue = useQueue((state) => state.queue);
  const seen = useSeenState();
  const closed = useFolded((state) => state.closed);
  const sections = useMemo(() => {
    if (filter === "all" && words.trim() === "") return sectionsOf(all, arrangement, queue);
    const found = filterSessions(all, filter, words, {
      seen,
      waiting: new Set(queue.map(({ id }) => id)),
      tagsOf: (id) => placementOf(arrangement, id).tags,
    });
    return [{ key: "found", kind: "found" as const, title: "", sessions: found }];
  }, [all, filter, words, arrangement, queue, seen]);
  const rows = useMemo(() => rowsOf(sections, closed, whole, current), [sections, closed, whole, current]);
  return { rows, any: all.length > 0 };
}
