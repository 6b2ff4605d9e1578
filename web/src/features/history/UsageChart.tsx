import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { UsageRow } from "../../gen/history";
import { formatCost } from "../../lib/format";
import { barsOf } from "./chart";

interface Props {
  days: readonly UsageRow[];
  /** How many days were asked for; none is everything. */
  period: number | undefined;
  today: string;
}

/** The cost of each day as a bar. The table below has the same in figures, for those who do not see it. */
export function UsageChart({ days, period, today }: Props) {
  const { t, i18n } = useTranslation();
  const bars = useMemo(() => barsOf(days, period, today), [days, period, today]);
  const date = new Intl.DateTimeFormat(i18n.language, { month: "short", day: "numeric", timeZone: "UTC" });
  const named = (day: string | undefined) => (day ? date.format(Date.parse(day)) : "");
  const highest = Math.max(0, ...bars.map((bar) => bar.cost));
  return (
    <figure className="mt-4 rounded-xl border border-line bg-raised px-4 pt-3 pb-2.5 shadow-card">
      <figcaption className="flex items-baseline justify-between text-xs text-ink-3">
        <span>{t("history.usage.perDay")}</span>
        <span className="tabular-nums">
          {t("history.usage.highest", { cost: formatCost(highest, i18n.language) })}
        </span>
      </figcaption>
      <div
        role="img"
        aria-label={t("history.usage.chart", { from: named(bars[0]?.day), to: named(bars.at(-1)?.day) })}
        className="mt-3 flex h-32 items-end gap-[2px]"
      >
        {bars.map((bar) => (
          <span
            key={bar.day}
            title={t("history.usage.bar", { day: named(bar.day), cost: formatCost(bar.cost, i18n.language) })}
            className="group flex h-full min-w-0 flex-1 items-end rounded-sm hover:bg-hover"
          >
            <span
              className="w-full rounded-t-sm bg-accent group-hover:bg-accent-strong"
              // A day on which anything was spent is seen.
              style={{ height: bar.cost > 0 ? `max(2px, ${bar.height * 100}%)` : 0 }}
            />
          </span>
        ))}
      </div>
      <div className="mt-1.5 flex justify-between text-2xs text-ink-3" aria-hidden>
        <span>{named(bars[0]?.day)}</span>
        {bars.length > 1 && <span>{named(bars.at(-1)?.day)}</span>}
      </div>
    </figure>
  );
}
