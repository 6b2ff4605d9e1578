import { memo } from "react";
import { useTranslation } from "react-i18next";
import { CopyButton } from "../../ui/CopyButton";
import { LimitMarks } from "../../ui/Limits";
import type { SessionInfo } from "../../gen/events";
import { formatClock, formatCost, formatCount, formatDuration, formatMilliseconds } from "../../lib/format";
import { useSeconds } from "../../lib/useNow";
import { type Summary, workingTime } from "../../session/summary";
import type { Transcript } from "../../session/transcript";
import { isBudgetSpent, RaiseBudget } from "./RaiseBudget";

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
  const running = summary.turnBegan !== undefined;
  const now = useSeconds(running);
  const contextTokens = transcript.contextTokens ?? summary.contextTokens;
  const { language } = i18n;
  if (summary.turns === 0 && !running) return null;
  const time = workingTime(summary, now);
  const turns = summary.turns + (running ? 1 : 0);
  return (
    <div
      role="group"
      aria-label={t("statistics.label")}
      className="mx-auto flex w-full max-w-[52rem] shrink-0 flex-wrap items-center gap-x-3 gap-y-1 overflow-hidden px-4 pb-1.5 text-2xs whitespace-nowrap text-ink-3 tabular-nums sm:px-11"
    >
      {/* What waits for the user says so itself. */}
      <span>{t(`status.${session.status}`)}</span>
      <span title={formatMilliseconds(time, language)} data-clock>
        {(running ? formatClock : formatDuration)(time, language)}
      </span>
      <span>{t("result.turns", { count: turns })}</span>
      <span className="max-sm:hidden">
        {t("result.tokens", {
          input: formatCount(summary.tokensIn, language),
          output: formatCount(summary.tokensOut, language),
        })}
      </span>
      <span>{formatCost(summary.costUsd, language)}</span>
      {contextTokens !== undefined && (
        <span className="max-sm:hidden">
          {t("statistics.context", { tokens: formatCount(contextTokens, language) })}
        </span>
      )}
      <LimitMarks />
      {/* Elsewhere it stands above the conversation. */}
      <span className="flex items-center sm:hidden">
        <span className="font-mono">{session.id.slice(0, 8)}</span>
        <CopyButton text={session.id} label={t("session.copyId")} className="-my-2" />
      </span>
      {isBudgetSpent(session) && session.status !== "running" && (
        <span className="text-wait">
          <RaiseBudget session={session} />
        </span>
      )}
    </div>
  );
});
