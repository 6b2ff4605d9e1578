/**
 * What the user does with their arrangement: shown at once, and sent to the server, which tells every other page. What the
 * server refuses is asked for again, so that nothing stays on the screen that is not so.
 */
import type { ArrangeSession, ServerEvent, SessionGroupInfo, SessionInfo, Sorting } from "../gen/events";
import { newId } from "../lib/id";
import {
  type Arrangement,
  movedPlaces,
  ownPlace,
  type Placement,
  placementOf,
  withGroup,
  withoutGroup,
  withPlacement,
} from "../session/arrangement";
import { request } from "./connection";
import type { Move } from "./moves";
import { store } from "./state";

const now = () => store.getState().arrangement;

function show(next: (arrangement: Arrangement) => Arrangement): void {
  store.setState(({ arrangement }) => ({ arrangement: next(arrangement) }));
}

/** What a change leaves of a placement. */
export function placed(
  before: Placement,
  { pinned = before.pinned, group = before.group, place = before.place, tags = before.tags }: Change,
): Placement {
  return {
    ...(pinned !== undefined && pinned !== null && { pinned }),
    ...(group !== undefined && group !== null && { group }),
    ...(place !== undefined && place !== null && { place }),
    tags,
  };
}

type Change = Omit<ArrangeSession, "sessionId">;

/** False when offline: nothing is changed. */
function change(sessionId: string, changes: Change): boolean {
  const sent = request({ type: "arrangement.session", payload: { sessionId, ...changes } }, command());
  if (sent) {
    underway.set(sessionId, (underway.get(sessionId) ?? 0) + 1);
    show((all) => withPlacement(all, sessionId, placed(placementOf(all, sessionId), changes)));
  }
  return sent;
}

/** What errors of arranging are known by. */
const COMMANDS = "arrange:";

const command = () => COMMANDS + newId();

/** How many changes of each session are on their way. */
const underway = new Map<string, number>();

/**
 * Whether the event tells of a change that this page has made and gone beyond since: who moves a session by three places does not
 * want to see it at the first again.
 */
export function isOvertaken(event: ServerEvent): boolean {
  const id = event.type === "arrangement.changed" ? event.payload.session?.sessionId : undefined;
  const left = id === undefined ? 0 : (underway.get(id) ?? 0) - 1;
  if (id === undefined) return false;
  if (left > 0) underway.set(id, left);
  else underway.delete(id);
  return left > 0;
}

/** A change of the arrangement was refused: what is shown is not so. */
export function isRefusal({ commandId, type }: ServerEvent): boolean {
  return type === "runner.error" && commandId?.startsWith(COMMANDS) === true;
}

/** As the server has it. */
export function askArrangement(): void {
  underway.clear();
  request({ type: "arrangement.get", payload: {} });
}

const pins = () =>
  [...now().placements]
    .flatMap(([id, { pinned }]) => (pinned === undefined ? [] : [{ id, place: pinned }]))
    .toSorted((a, b) => a.place - b.place || a.id.localeCompare(b.id));

export const isPinned = (id: string): boolean => placementOf(now(), id).pinned !== undefined;

/** At the end of the pinned ones. */
export function pinSession(id: string, pinned: boolean): boolean {
  return change(id, { pinned: pinned ? (pins().at(-1)?.place ?? 0) + 1 : null });
}

/** Pins a session before that one, or at the end. */
function pinBefore(id: string, before: string | undefined): boolean {
  const others = pins().filter((each) => each.id !== id);
  const at = others.findIndex((each) => each.id === before);
  const moves = movedPlaces(others, id, at < 0 ? others.length : at);
  return moves.every((move) => change(move.id, { pinned: move.place }));
}

/** Puts a session where the user has dropped or moved it. False when offline. */
export function moveSession(session: SessionInfo, move: Exclude<Move, { kind: "sorted" }>): boolean {
  switch (move.kind) {
    case "pin":
      return pinBefore(session.id, move.before);
    case "group":
      return putIntoGroup(session.id, move.group);
    case "place":
      return moveAmong(session, move.others, move.to, move.group);
  }
}

/** Into a group, or out of all of them. */
export function putIntoGroup(id: string, group: string | undefined): boolean {
  return change(id, { group: group ?? null, pinned: null });
}

/**
 * Moves a session to this place among `others`, which are listed as they stand, the first one first. It goes into their group,
 * too.
 */
function moveAmong(
  session: SessionInfo,
  others: readonly SessionInfo[],
  to: number,
  group: string | undefined,
): boolean {
  const arrangement = now();
  // The largest place comes first.
  const places = others.map((each) => ({ id: each.id, place: ownPlace(arrangement, each) })).toReversed();
  const moves = movedPlaces(places, session.id, others.length - to);
  return moves.every(({ id, place }) =>
    change(id, id === session.id ? { place, group: group ?? null, pinned: null } : { place }),
  );
}

export const tagSession = (id: string, tags: readonly string[]): boolean => change(id, { tags: [...tags] });

/** Makes a group at the end, with the session in it if one is named. Gives its id. */
export function makeGroup(name: string, session?: string): string | undefined {
  const id = newId();
  const place = (now().groups.at(-1)?.place ?? 0) + 1;
  if (!saveGroup({ id, name, place })) return undefined;
  if (session !== undefined) putIntoGroup(session, id);
  return id;
}

function saveGroup(group: SessionGroupInfo): boolean {
  const sent = request({ type: "arrangement.group", payload: group }, command());
  if (sent) show((all) => withGroup(all, group));
  return sent;
}

export function renameGroup(id: string, name: string): boolean {
  const group = now().groups.find((each) => each.id === id);
  return group !== undefined && saveGroup({ ...group, name });
}

/** To this place among the others. */
export function moveGroup(id: string, to: number): boolean {
  const { groups } = now();
  const moves = movedPlaces(groups, id, to);
  return moves.every(({ id: moved, place }) => {
    const group = groups.find((each) => each.id === moved);
    return group !== undefined && saveGroup({ ...group, place });
  });
}

/** Gives what brings the group back, with the sessions that were in it. Undefined when offline: nothing was removed. */
export function removeGroup(id: string): (() => boolean) | undefined {
  const { groups, placements } = now();
  const group = groups.find((each) => each.id === id);
  const members = [...placements].flatMap(([session, placement]) =>
    placement.group === id ? [session] : [],
  );
  if (!group || !request({ type: "arrangement.removeGroup", payload: { id } }, command())) return undefined;
  show((all) => withoutGroup(all, id));
  return () => saveGroup(group) && members.every((session) => change(session, { group: id }));
}

export function sortBy(sorting: Sorting): boolean {
  const sent = request({ type: "arrangement.sort", payload: { sorting } }, command());
  if (sent) show((all) => ({ ...all, sorting }));
  return sent;
}
