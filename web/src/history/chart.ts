/** The bars of the chart of costs. */
import type { UsageRow } from "../gen/history";

export interface Bar {
  readonly day: string;
  readonly cost: number;
  /** A share of the highest. */
  readonly height: number;
}

const DAY = 86_400_000;
/** More would be thinner than can be seen. */
const MOST = 90;

/** One for each day from the first to the last, those without any use included. */
export function barsOf(days: readonly UsageRow[]): Bar[] {
  const last = days.at(-1);
  const first = days[0];
  if (!first || !last) return [];
  const costs = new Map(days.map((row) => [row.key, row.cost_usd]));
  const end = Date.parse(last.key);
  const start = Math.max(Date.parse(first.key), end - (MOST - 1) * DAY);
  const all: { day: string; cost: number }[] = [];
  for (let time = start; time <= end; time += DAY) {
    const day = new Date(time).toISOString().slice(0, 10);
    all.push({ day, cost: costs.get(day) ?? 0 });
  }
  const highest = Math.max(...all.map((bar) => bar.cost));
  return all.map((bar) => ({ ...bar, height: highest > 0 ? bar.cost / highest : 0 }));
}
