/**
 * Up to where the view of a session has been cleared. The conversation itself is untouched, and a reload shows all of it;
 * but a prompt that is sent from an empty view starts a new session (`beginsAnew.ts`).
 */
import { create } from "zustand";
import type { Transcript } from "../session/transcript";

const useCleared = create<{ readonly upTo: ReadonlyMap<string, number> }>()(() => ({ upTo: new Map() }));

export function clearView(sessionId: string, lastSeq: number): void {
  useCleared.setState(({ upTo }) => ({ upTo: new Map(upTo).set(sessionId, lastSeq) }));
}

export function showAll(sessionId: string): void {
  clearView(sessionId, 0);
}

/** The transcript since the view was cleared. Pure. */
export function sinceCleared(transcript: Transcript, cleared: number, anew: boolean): Transcript {
  if (cleared === 0) return transcript;
  return {
    ...transcript,
    items: transcript.items.filter((item) => item.seqs.some((seq) => seq > cleared)),
    // The next prompt starts another agent, of which nothing is known yet.
    ...(anew && { contextTokens: undefined, init: undefined, tasks: new Map() }),
  };
}

export function useClearedUpTo(sessionId: string): number {
  return useCleared((state) => state.upTo.get(sessionId) ?? 0);
}
