import { memo, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { CopyButton } from "../../ui/CopyButton";
import { useMark } from "../../ui/StatusMark";
import type { SessionInfo } from "../../gen/events";
import { formatCost, formatCount, formatDuration } from "../../lib/format";
import { costOf } from "../../session/summary";
import type { Transcript } from "../../session/transcript";

/** The session in numbers, between what was said and what comes next. */
export const StatisticsBar = memo(function StatisticsBar({
  session,
  transcript,
}: {
  session: SessionInfo;
  transcript: Transcript;
}) {
  const { t, i18n } = useTranslation();
  const mark = useMark(session);
  const { items, contextTokens } = transcript;
  const cost = useMemo(() => costOf(items), [items]);
  const { language } = i18n;
  if (cost.turns === 0) return null;
  const facts = [
    t(`status.${mark}`),
    formatDuration(cost.durationMs, language),
    t("result.turns", { count: cost.turns }),
    cost.usd !== undefined && formatCost(cost.usd, language),
  ].filter((fact): fact is string => Boolean(fact));
  return (
    <div
      role="group"
      aria-label={t("statistics.label")}
      className="mx-auto flex w-full max-w-[52rem] shrink-0 items-center gap-x-3 overflow-hidden px-4 pb-1.5 text-2xs whitespace-nowrap text-ink-3 tabular-nums sm:px-11"
    >
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      {contextTokens !== undefined && (
        <span className="max-sm:hidden">
          {t("statistics.context", { tokens: formatCount(contextTokens, language) })}
        </span>
      )}
      <span className="flex items-center">
        <span className="font-mono">{session.id.slice(0, 8)}</span>
        <CopyButton text={session.id} label={t("session.copyId")} className="-my-2" />
      </span>
    </div>
  );
});
