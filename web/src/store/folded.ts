/** Which sections of the list are folded away. Kept in this browser: a phone has less room than a desk. */
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";

interface FoldedState {
  readonly closed: ReadonlySet<string>;
  readonly toggle: (key: string, open?: boolean) => void;
}

const MOST_KEPT = 500;

function load(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(readStored("list.closed") ?? "[]");
    if (Array.isArray(stored)) return new Set(stored.filter((key) => typeof key === "string"));
  } catch {
    // What can't be read is not worth keeping.
  }
  return new Set();
}

export const useFolded = create<FoldedState>()((set) => ({
  closed: load(),
  toggle: (key, open) =>
    set(({ closed }) => {
      const next = new Set(closed);
      if (open ?? closed.has(key)) next.delete(key);
      else next.add(key);
      return { closed: next };
    }),
}));

useFolded.subscribe(({ closed }) =>
  writeStored("list.closed", closed.size > 0 ? JSON.stringify([...closed].slice(-MOST_KEPT)) : undefined),
);
