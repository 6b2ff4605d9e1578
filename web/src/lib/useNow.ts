import { useSyncExternalStore } from "react";
import { serverTime } from "./serverClock";

interface Clock {
  readonly subscribe: (listener: () => void) => () => void;
  readonly read: () => number;
}

/** One clock for all who look at it, which stands still while nobody does. */
function clock(tickMs: number, time: () => number): Clock {
  let now = time();
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    read: () => now,
    subscribe(listener) {
      listeners.add(listener);
      if (timer === undefined) {
        now = time();
        timer = setInterval(() => {
          now = time();
          for (const each of listeners) each();
        }, tickMs);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

const minutes = clock(30_000, Date.now);
const seconds = clock(1_000, () => serverTime());
const stopped = () => () => {};

/** The time, for ages: ticks twice a minute. */
export function useNow(): number {
  return useSyncExternalStore(minutes.subscribe, minutes.read);
}

/** The server's time, once a second while `running`. */
export function useSeconds(running: boolean): number {
  return useSyncExternalStore(running ? seconds.subscribe : stopped, seconds.read);
}
