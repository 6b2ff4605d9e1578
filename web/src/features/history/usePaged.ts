import { useEffect, useRef, useState } from "react";

export interface Paged<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly exact: boolean;
  /** Whether nothing more comes by itself. */
  readonly whole: boolean;
  readonly state: "loading" | "ready" | "failed";
  readonly message?: string;
}

interface Part<T> {
  readonly items: readonly T[];
  readonly total: number;
  readonly exact?: boolean;
  readonly whole?: boolean;
}

type Load<T> = (offset: number, limit: number) => Promise<Part<T>>;

const nothing = { items: [], total: 0, exact: true, whole: true, state: "loading" } as const;

/** A long list that is fetched part by part as it is scrolled. A new `key` is a new list. */
export function usePaged<T>(
  key: string,
  load: Load<T>,
  limit: number,
): { paged: Paged<T>; more: () => void; reload: () => void } {
  const [kept, setKept] = useState<{ key: string; paged: Paged<T> }>({ key, paged: nothing });
  const latest = useRef(load);
  const asked = useRef(0);
  const paged: Paged<T> = kept.key === key ? kept.paged : nothing;
  const { items, total, exact, whole, state } = paged;

  /** Only the last question's answer counts. */
  async function ask(offset: number, count: number, before: readonly T[]): Promise<void> {
    asked.current += 1;
    const round = asked.current;
    let next: Paged<T>;
    try {
      const part = await latest.current(offset, count);
      const all = [...before, ...part.items];
      const said = { total: part.total, exact: part.exact ?? true, whole: part.whole ?? true };
      next = { items: all, ...said, state: "ready" };
    } catch (error) {
      const { message } = error as Error;
      next = { items: before, total: before.length, exact: true, whole: true, state: "failed", message };
    }
    if (round === asked.current) setKept({ key, paged: next });
  }

  useEffect(() => {
    latest.current = load;
  });
  useEffect(() => {
    void ask(0, limit, []);
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `key` says what is asked for
  }, [key, limit]);

  return {
    paged,
    more() {
      if (state !== "ready" || items.length >= total) return;
      setKept({ key, paged: { items, total, exact, whole, state: "loading" } });
      void ask(items.length, limit, items);
    },
    // What is in sight stays there until the new list has come.
    reload: () => void ask(0, Math.max(limit, items.length), []),
  };
}
