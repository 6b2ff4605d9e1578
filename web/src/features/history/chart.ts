/** The bars of the chart of costs. */
import type { UsageRow } from "../../gen/history";

export interface Bar {
  readonly day: string;
  readonly cost: number;
  /** A share of the highest. */
  readonly height: number;
}

/** The day that a time is part of where the reader is, as the server writes days. */
export function localDay(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

const DAY = 86_400_000;
/** More would be thinner than can be seen. */
const MOST = 90;

/** Fewer would be broader than a bar should be. */
const LEAST = 7;

/** One for each day up to today, at least as many as the period has, those without any use included. */
export function barsOf(days: readonly UsageRow[], period: number | undefined, today: string): Bar[] {
  const last = days.at(-1);
  const first = days[0];
  if (!first || !last) return [];
  const costs = new Map(days.map((row) => [row.key, row.cost_usd]));
  // A server further east may have seen tomorrow.
  const end = Math.max(Date.parse(last.key), Date.parse(today));
  const count = Math.max(LEAST, period ?? 0, (end - Date.parse(first.key)) / DAY + 1);
  const start = end - (Math.min(MOST, count) - 1) * DAY;
  const all: { day: string; cost: number }[] = [];
  for (let time = start; time <= end; time += DAY) {
    const day = new Date(time).toISOString().slice(0, 10);
    all.push({ day, cost: costs.get(day) ?? 0 });
  }
  const highest = Math.max(...all.map((bar) => bar.cost));
  return all.map((bar) => ({ ...bar, height: highest > 0 ? bar.cost / highest : 0 }));
}
