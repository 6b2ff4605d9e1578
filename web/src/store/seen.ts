/** Up to where the user has seen each session, for the marks of what is new. Kept in this browser. */
import { useEffect } from "react";
import { create } from "zustand";
import type { SessionInfo } from "../gen/events";
import { readStored, writeStored } from "../lib/storage";

interface SeenState {
  /** Sessions from before this browser's first visit count as seen. */
  readonly since: number;
  readonly seen: Readonly<Record<string, number>>;
}

const MOST_REMEMBERED = 2_000;

function load(): SeenState {
  try {
    const stored = JSON.parse(readStored("seen") ?? "") as SeenState;
    if (typeof stored.since === "number" && typeof stored.seen === "object") return stored;
  } catch {
    // Nothing kept yet, or nothing readable: everything there is counts as seen.
  }
  return { since: Date.now(), seen: {} };
}

const useSeen = create<SeenState>()(load);

export function isUnread(session: SessionInfo, { since, seen }: SeenState): boolean {
  if (session.status === "running") return false;
  const upTo = seen[session.id];
  return upTo === undefined ? session.createdAt > since : session.lastSeq > upTo;
}

export function useUnread(session: SessionInfo): boolean {
  return useSeen((state) => isUnread(session, state));
}

export function useSeenState(): SeenState {
  return useSeen();
}

/** While a session is in sight, everything in it is seen. */
export function useMarkSeen(session: SessionInfo | undefined): void {
  const id = session?.id;
  const lastSeq = session?.lastSeq;
  useEffect(() => {
    if (id === undefined || lastSeq === undefined) return;
    const mark = () => {
      if (document.visibilityState !== "visible" || useSeen.getState().seen[id] === lastSeq) return;
      useSeen.setState(({ since, seen }) => {
        const { [id]: _before, ...others } = seen;
        // The newest last, so that what is let go is what was seen longest ago.
        const kept = Object.fromEntries([
          ...Object.entries(others).slice(1 - MOST_REMEMBERED),
          [id, lastSeq],
        ]);
        return { since, seen: kept };
      });
    };
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [id, lastSeq]);
}

let writing: ReturnType<typeof setTimeout> | undefined;
const WRITE_PAUSE_MS = 1_000;
const write = () => writeStored("seen", JSON.stringify(useSeen.getState()));
useSeen.subscribe(() => {
  clearTimeout(writing);
  writing = setTimeout(write, WRITE_PAUSE_MS);
});
if (typeof addEventListener === "function") addEventListener("pagehide", write);
