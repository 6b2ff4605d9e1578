import { memo } from "react";
import { useTranslation } from "react-i18next";
import { CopyButton } from "../../ui/CopyButton";
import { useMark } from "../../ui/StatusMark";
import type { SessionInfo } from "../../gen/events";
import { formatCost, formatCount, formatDuration } from "../../lib/format";
import { useNow } from "../../lib/useNow";
import { type Summary, workingTime } from "../../session/summary";
import type { Transcript } from "../../session/transcript";

/** The session's totals, between the conversation and the prompt field. */
export const StatisticsBar = memo(function StatisticsBar({
  session,
  summary,
  transcript,
}: {
  session: SessionInfo;
  summary: Summary;
  transcript: Transcript;
}) {
  const { t, i18n } = useTranslation();
  const mark = useMark(session);
  const now = useNow();
  const contextTokens = transcript.contextTokens ?? summary.contextTokens;
  const { language } = i18n;
  if (summary.turns === 0) return null;
  const facts = [
    t(`status.${mark}`),
    formatDuration(workingTime(summary, now), language),
    t("result.turns", { count: summary.turns }),
    formatCost(summary.costUsd, language),
  ];
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
