/**
 * Up to where the view of a session has been cleared. The conversation itself is untouched, and a reload shows all of it;
 * but who says something to an empty view begins a new session (`beginsAnew.ts`).
 */
import { create } from "zustand";

const useCleared = create<{ readonly upTo: ReadonlyMap<string, number> }>()(() => ({ upTo: new Map() }));

export function clearView(sessionId: string, lastSeq: number): void {
  useCleared.setState(({ upTo }) => ({ upTo: new Map(upTo).set(sessionId, lastSeq) }));
}

export function showAll(sessionId: string): void {
  clearView(sessionId, 0);
}

export function useClearedUpTo(sessionId: string): number {
  return useCleared((state) => state.upTo.get(sessionId) ?? 0);
}
