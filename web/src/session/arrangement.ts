/** How the viewer has arranged their sessions: pins, groups, tags, and an order of their own. Kept by the server. Pure. */
import type { PlacementInfo, ServerEvent, SessionGroupInfo, SessionInfo, Sorting } from "../gen/events";

export type Placement = Omit<PlacementInfo, "sessionId">;

export interface Arrangement {
  readonly sorting: Sorting;
  /** By place. */
  readonly groups: readonly SessionGroupInfo[];
  /** Those for which something was chosen. */
  readonly placements: ReadonlyMap<string, Placement>;
}

export const noArrangement: Arrangement = { sorting: "activity", groups: [], placements: new Map() };

const nothingChosen: Placement = { tags: [] };

export const placementOf = ({ placements }: Arrangement, id: string): Placement =>
  placements.get(id) ?? nothingChosen;

export function reduceArrangement(arrangement: Arrangement, event: ServerEvent): Arrangement {
  if (event.type === "arrangement") {
    const { sorting, groups, sessions } = event.payload;
    return {
      sorting,
      groups: byPlace(groups),
      placements: new Map(sessions.map(({ sessionId, ...placement }) => [sessionId, placement])),
    };
  }
  if (event.type === "session.deleted") {
    const { sessionId } = event.payload;
    if (!arrangement.placements.has(sessionId)) return arrangement;
    return withPlacement(arrangement, sessionId, nothingChosen);
  }
  if (event.type !== "arrangement.changed") return arrangement;
  const { session, group, removedGroup, sorting } = event.payload;
  let next = arrangement;
  if (session) {
    const { sessionId, ...placement } = session;
    next = withPlacement(next, sessionId, placement);
  }
  if (group) next = withGroup(next, group);
  if (removedGroup !== undefined) next = withoutGroup(next, removedGroup);
  if (sorting) next = { ...next, sorting };
  return next;
}

export function withPlacement(arrangement: Arrangement, id: string, placement: Placement): Arrangement {
  const placements = new Map(arrangement.placements);
  const { pinned, group, place, tags } = placement;
  const chosen = pinned !== undefined || group !== undefined || place !== undefined || tags.length > 0;
  if (chosen) placements.set(id, placement);
  else placements.delete(id);
  return { ...arrangement, placements };
}

export function withGroup(arrangement: Arrangement, group: SessionGroupInfo): Arrangement {
  const others = arrangement.groups.filter(({ id }) => id !== group.id);
  return { ...arrangement, groups: byPlace([...others, group]) };
}

export function withoutGroup(arrangement: Arrangement, removed: string): Arrangement {
  let next: Arrangement = { ...arrangement, groups: arrangement.groups.filter(({ id }) => id !== removed) };
  for (const [id, { group, ...rest }] of arrangement.placements)
    if (group === removed) next = withPlacement(next, id, rest);
  return next;
}

const byPlace = (groups: readonly SessionGroupInfo[]): SessionGroupInfo[] =>
  groups.toSorted((a, b) => a.place - b.place || a.id.localeCompare(b.id));

/** Where a session stands in the viewer's own order: new ones come first until they are moved. */
export const ownPlace = (arrangement: Arrangement, session: SessionInfo): number =>
  placementOf(arrangement, session.id).place ?? session.createdAt;

/** The room beside the first and the last of a list. */
const STEP = 1;

/**
 * A place between two neighbours; either may be missing. Undefined if there is no number between them: then the neighbours
 * have to move first.
 */
export function placeBetween(low: number | undefined, high: number | undefined): number | undefined {
  if (low === undefined) return high === undefined ? 0 : high - STEP;
  if (high === undefined) return low + STEP;
  const middle = low + (high - low) / 2;
  return middle > low && middle < high ? middle : undefined;
}

/**
 * The places that change when one of `places` (ascending) comes to stand at `to`, an index among the others. Mostly one; all of
 * them, evenly spread, where two neighbours have left no room.
 */
export function movedPlaces(
  places: readonly { readonly id: string; readonly place: number }[],
  id: string,
  to: number,
): readonly { readonly id: string; readonly place: number }[] {
  const others = places.filter((each) => each.id !== id);
  const place = placeBetween(others[to - 1]?.place, others[to]?.place);
  if (place !== undefined) return [{ id, place }];
  const first = others[0]?.place ?? 0;
  const order = others.toSpliced(to, 0, { id, place: 0 });
  return order.map((each, index) => ({ id: each.id, place: first + index * STEP }));
}

/** Every tag that some session has, the most used first. */
export function allTags({ placements }: Arrangement): string[] {
  const counts = new Map<string, number>();
  for (const { tags } of placements.values())
    for (const tag of tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([tag]) => tag);
}
