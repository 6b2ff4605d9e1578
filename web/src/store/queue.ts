/**
 * What needs the user, in all sessions: one queue, whose order does not change while someone works through it. Every count in
 * the page comes from here.
 */
import { create } from "zustand";
import type { SessionInfo } from "../gen/events";
import { useHooks } from "./hookCalls";
import { type AppState, store } from "./state";

export interface Waiting {
  readonly id: string;
  /** How many decisions and callbacks wait in it. */
  readonly count: number;
  /** When it was last changed before it came into the queue: what happens in it since then does not move it. */
  readonly since: number;
}

/** The sessions that wait, those that have waited longest first. */
export function waitingIn(
  { sessions, leaving }: Pick<AppState, "sessions" | "leaving">,
  calls: readonly { readonly sessionId: string }[],
): Waiting[] {
  const called = new Map<string, number>();
  for (const { sessionId } of calls) called.set(sessionId, (called.get(sessionId) ?? 0) + 1);
  const found: SessionInfo[] = [];
  for (const session of sessions.values()) {
    const waits = session.pending > 0 || called.has(session.id);
    if (waits && !leaving.has(session.id) && session.deleteAt === undefined) found.push(session);
  }
  return found
    .toSorted((a, b) => a.updatedAt - b.updatedAt || a.id.localeCompare(b.id))
    .map(({ id, pending, updatedAt }) => ({
      id,
      count: pending + (called.get(id) ?? 0),
      since: updatedAt,
    }));
}

/** Of two that are in the queue neither overtakes the other; who is new stands where it belongs by its age. */
export function queueAfter(before: readonly Waiting[], now: readonly Waiting[]): readonly Waiting[] {
  const known = new Map(before.map(({ id, since }) => [id, since]));
  const next = now
    .map((each) => ({ ...each, since: known.get(each.id) ?? each.since }))
    .toSorted((a, b) => a.since - b.since || a.id.localeCompare(b.id));
  const same =
    next.length === before.length &&
    next.every(({ id, count }, index) => before[index]?.id === id && before[index].count === count);
  return same ? before : next;
}

/** The next session of the queue after this one, round and round. Undefined if the queue is empty. */
export function nextInQueue(
  queue: readonly Waiting[],
  here: string | undefined,
  step: 1 | -1,
): string | undefined {
  const at = queue.findIndex(({ id }) => id === here);
  if (at < 0) return queue.at(step > 0 ? 0 : -1)?.id;
  return queue.at((at + step) % queue.length)?.id;
}

export const total = (queue: readonly Waiting[]): number => queue.reduce((sum, { count }) => sum + count, 0);

interface QueueState {
  readonly queue: readonly Waiting[];
}

export const useQueue = create<QueueState>()(() => ({ queue: current() }));

function current(): Waiting[] {
  return waitingIn(store.getState(), useHooks.getState().calls);
}

function bringUpToDate(): void {
  useQueue.setState(({ queue }) => {
    const next = queueAfter(queue, current());
    return next === queue ? {} : { queue: next };
  });
}

store.subscribe((state, before) => {
  if (state.sessions !== before.sessions || state.leaving !== before.leaving) bringUpToDate();
});
useHooks.subscribe(bringUpToDate);

/** How many decisions and callbacks wait for the user, in all sessions. */
export const usePending = (): number => useQueue(({ queue }) => total(queue));
