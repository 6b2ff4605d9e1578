/** What is left of the account's limits: a word in a status bar, or a row of bars. */
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { formatMoment, formatShare } from "../lib/format";
import { useNow } from "../lib/useNow";
import { currentLimits, type Limit } from "../session/quota";
import { useQuota } from "../store/quota";

const known = ["five_hour", "seven_day", "seven_day_opus", "seven_day_sonnet", "overage"] as const;

function useLimits(): readonly Limit[] {
  const quota = useQuota((state) => state.quota);
  return currentLimits(quota, useNow());
}

function useName(): (limit: Limit) => string {
  const { t } = useTranslation();
  return ({ name }) => {
    const own = known.find((each) => each === name);
    return own ? t(`quota.${own}`) : name;
  };
}

const tone = (used: number) => (used >= 0.95 ? "text-bad" : used >= 0.8 ? "text-wait" : undefined);

/** The limits in a line, with when they start anew on hover. */
export function LimitMarks() {
  const { t, i18n } = useTranslation();
  const nameOf = useName();
  const { language } = i18n;
  return useLimits().map((limit) => (
    <span
      key={limit.name}
      className={tone(limit.used)}
      title={t("quota.resets", { time: formatMoment(limit.resetsAt, language) })}
    >
      {t("quota.used", { name: nameOf(limit), share: formatShare(limit.used, language) })}
    </span>
  ));
}

/** The limits as bars. Nothing where none is known: with an API key there are none. */
export function LimitBars() {
  const { t, i18n } = useTranslation();
  const nameOf = useName();
  const limits = useLimits();
  const { language } = i18n;
  if (limits.length === 0) return null;
  return (
    <section aria-label={t("quota.label")} className="mb-6">
      <h2 className="mb-2 text-sm font-semibold">{t("quota.label")}</h2>
      <ul className="grid gap-2.5 sm:grid-cols-2">
        {limits.map((limit) => (
          <li key={limit.name} className="rounded-xl border border-line bg-raised px-4 py-3 shadow-card">
            <p className="flex items-baseline justify-between gap-2 text-sm">
              <span className="font-medium">{nameOf(limit)}</span>
              <span className={cn("tabular-nums", tone(limit.used) ?? "text-ink-2")}>
                {t("quota.left", { share: formatShare(1 - limit.used, language) })}
              </span>
            </p>
            <div className="my-2 h-1.5 overflow-hidden rounded-full bg-active" aria-hidden>
              <div
                className={cn(
                  "h-full rounded-full",
                  limit.used >= 0.95 ? "bg-bad" : limit.used >= 0.8 ? "bg-wait" : "bg-good",
                )}
                style={{ width: `${limit.used * 100}%` }}
              />
            </div>
            <p className="text-xs text-ink-3">
              {t("quota.resets", { time: formatMoment(limit.resetsAt, language) })}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
