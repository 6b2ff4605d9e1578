/** Changes of transcripts, also by other programs. One connection, for as long as there are subscribers. */
import { useEffect, useEffectEvent } from "react";
import type { Change, HistoryChanges } from "../../gen/history";
import { followStream } from "../../wire/eventStream";

type Listener = (changes: readonly Change[]) => void;

const listeners = new Set<Listener>();
let stop: (() => void) | undefined;

function open(): void {
  let begun = false;
  stop = followStream("/api/history/live", ({ type, data }) => {
    if (type !== "changed") return;
    const { changes } = JSON.parse(data) as HistoryChanges;
    // The first event of a connection has no news; after a break it means that some may have been missed.
    const news: readonly Change[] = changes.length === 0 && begun ? [{ kind: "everything" }] : changes;
    begun = true;
    if (news.length > 0) for (const listener of listeners) listener(news);
  });
}

/** Calls `onChange` at most once a second. */
export function useHistoryChanges(onChange: Listener): void {
  const tell = useEffectEvent(onChange);
  useEffect(() => {
    let waiting: Change[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const flush = () => {
      timer = undefined;
      last = Date.now();
      const changes = waiting;
      waiting = [];
      tell(changes);
    };
    const listener: Listener = (changes) => {
      waiting.push(...changes);
      timer ??= setTimeout(flush, Math.max(0, last + 1_000 - Date.now()));
    };
    listeners.add(listener);
    if (!stop) open();
    return () => {
      clearTimeout(timer);
      listeners.delete(listener);
      if (listeners.size > 0) return;
      stop?.();
      stop = undefined;
    };
  }, []);
}

/** Whether any of the changes may be about this session. */
export const concerns = (changes: readonly Change[], id: string): boolean =>
  changes.some((change) => change.kind === "everything" || change.session === id);
