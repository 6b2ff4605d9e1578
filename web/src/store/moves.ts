/** What it means to put a session, or a group, somewhere in the list. Pure. */
import type { SessionInfo, Sorting } from "../gen/events";
import type { ListRow, Section } from "./sections";

export type Move =
  /** Among the pinned, before that one; at their end without one. */
  | { readonly kind: "pin"; readonly before: string | undefined }
  /** Into a group, or out of all of them. */
  | { readonly kind: "group"; readonly group: string | undefined }
  /** To a place among others, in their group. */
  | {
      readonly kind: "place";
      readonly group: string | undefined;
      readonly others: readonly SessionInfo[];
      readonly to: number;
    }
  /** The order can't be changed as long as the sessions are sorted by activity. */
  | { readonly kind: "sorted" };

export const groupOf = ({ kind, key }: Section): string | undefined =>
  kind === "group" ? key.slice("group:".length) : undefined;

/** `at`: the place among the sessions of the section before which it is put, itself included. Undefined: it can't stand there. */
export function moveTo(
  session: SessionInfo,
  from: Section,
  target: Section,
  at: number,
  sorting: Sorting,
): Move | undefined {
  const others = target.sessions.filter(({ id }) => id !== session.id);
  const to = target.sessions.slice(0, at).filter(({ id }) => id !== session.id).length;
  const stays = from.key === target.key && target.sessions.findIndex(({ id }) => id === session.id) === to;
  switch (target.kind) {
    case "pinned":
      return stays ? undefined : { kind: "pin", before: others[to]?.id };
    case "group":
    case "project": {
      // A session can't change its folder.
      if (target.kind === "project" && target.cwd !== session.cwd) return undefined;
      const group = groupOf(target);
      if (stays) return undefined;
      if (sorting === "own") return { kind: "place", group, others, to };
      return from.key === target.key ? { kind: "sorted" } : { kind: "group", group };
    }
    case "needs":
    case "running":
    case "found":
      return undefined;
  }
}

/** One place up or down, over the edge of the section where there is another one that takes it. */
export function stepTo(
  rows: readonly ListRow[],
  key: string,
  step: 1 | -1,
  sorting: Sorting,
): Move | undefined {
  const row = rows.find((each) => each.kind === "session" && each.key === key);
  if (row?.kind !== "session") return undefined;
  const { section, session } = row;
  const at = section.sessions.findIndex(({ id }) => id === session.id);
  const next = at + step;
  if (next >= 0 && next < section.sessions.length)
    return moveTo(session, section, section, step > 0 ? next + 1 : next, sorting);
  const sections = rows.flatMap((each) => (each.kind === "header" ? [each.section] : []));
  const place = sections.findIndex((each) => each.key === section.key);
  const beyond = step > 0 ? sections.slice(place + 1) : sections.slice(0, place).toReversed();
  for (const target of beyond) {
    const move = moveTo(session, section, target, step > 0 ? 0 : target.sessions.length, sorting);
    if (move) return move;
  }
  return undefined;
}
