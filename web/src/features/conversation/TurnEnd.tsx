/** How a turn ended: what it took, what went wrong, and what can be done about that. */
import { CircleAlert, CircleCheck, CircleSlash, RotateCcw } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { formatClock, formatCost, formatCount, formatDuration, formatMilliseconds } from "../../lib/format";
import { serverTime } from "../../lib/serverClock";
import { useSeconds } from "../../lib/useNow";
import type { NoticeItem, ResultItem } from "../../session/items";
import { useApp, useSession } from "../../store/hooks";
import { retryLastPrompt } from "../../store/retry";
import { Button } from "../../ui/Button";
import { tellFailure } from "../../ui/toasts";
import { Facts, Line } from "./Line";
import { isBudgetSpent, RaiseBudget } from "./RaiseBudget";

const outcomes = {
  success: { icon: CircleCheck, className: "text-good" },
  stopped: { icon: CircleSlash, className: "text-ink-3" },
  error: { icon: CircleAlert, className: "text-bad" },
} as const;

/** One line with what this turn took; the session's totals are below the conversation. */
export function TurnResult({ item, sessionId }: { item: ResultItem; sessionId: string }) {
  const { t, i18n } = useTranslation();
  const { icon: Icon, className } = outcomes[item.outcome];
  const { language } = i18n;
  const facts: ReactNode[] = [
    item.durationMs !== undefined && (
      <span key="time" title={formatMilliseconds(item.durationMs, language)}>
        {formatDuration(item.durationMs, language)}
      </span>
    ),
    item.tokensIn !== undefined &&
      item.tokensOut !== undefined &&
      t("result.tokens", {
        input: formatCount(item.tokensIn, language),
        output: formatCount(item.tokensOut, language),
      }),
    item.costUsd !== undefined && formatCost(item.costUsd, language),
  ].filter(Boolean);
  return (
    <section
      aria-label={t("result.label")}
      data-outcome={item.outcome}
      className="border-t border-line pt-2 pb-1"
    >
      <Line
        sessionId={sessionId}
        item={item}
        icon={<Icon className={cn("size-3.5", className)} aria-hidden />}
      >
        <Facts
          lead={<span className={cn("font-medium", className)}>{t(`result.${item.outcome}`)}</span>}
          facts={facts}
        />
      </Line>
      {item.outcome === "error" && (
        <div role="alert" className="mt-1 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad">
          <Problems item={item} />
          <Remedies
            sessionId={sessionId}
            itemKey={item.key}
            problems={item.problems}
            budget={item.subtype === BUDGET_SPENT}
          />
        </div>
      )}
    </section>
  );
}

/** The agent's word for a turn that ended because the budget was used up. */
const BUDGET_SPENT = "error_max_budget_usd";

function Problems({ item }: { item: ResultItem }) {
  const { t } = useTranslation();
  if (item.subtype === BUDGET_SPENT) return <p>{t("result.budgetSpent")}</p>;
  if (item.problems.length === 0) return <p>{t("result.unknown", { subtype: item.subtype })}</p>;
  return item.problems.map((problem) => (
    <p key={problem} className="break-words whitespace-pre-wrap">
      {problem}
    </p>
  ));
}

/** A turn that ended without a result: the agent or the server is gone. */
export function Failure({ item, sessionId }: { item: NoticeItem; sessionId: string }) {
  const { t, i18n } = useTranslation();
  return (
    <div
      role="alert"
      data-outcome="error"
      className="flex items-start gap-2 rounded-lg bg-bad-soft px-3 py-2 text-sm text-bad"
    >
      <CircleAlert className="mt-0.5 size-4 shrink-0" aria-hidden />
      <div className="min-w-0">
        <p className="break-words whitespace-pre-wrap">{item.text}</p>
        {item.durationMs !== undefined && (
          <p className="text-xs" title={formatMilliseconds(item.durationMs, i18n.language)}>
            {t("result.after", { time: formatDuration(item.durationMs, i18n.language) })}
          </p>
        )}
        <Remedies sessionId={sessionId} itemKey={item.key} problems={[item.text ?? ""]} budget={false} />
      </div>
    </div>
  );
}

const SIGN_IN = /log ?in|api key|authenticat|oauth|\b401\b/i;

interface RemediesProps {
  sessionId: string;
  itemKey: string;
  problems: readonly string[];
  budget: boolean;
}

/** What can be done about a turn that failed. Only the last one: an earlier one has been dealt with. */
function Remedies({ sessionId, itemKey, problems, budget }: RemediesProps) {
  const { t } = useTranslation();
  const session = useSession(sessionId);
  const last = useIsLast(sessionId, itemKey);
  if (!session || session.status === "running" || !last) return null;
  const retry = () => void retryLastPrompt(sessionId).catch(tellFailure);
  return (
    <div className="mt-2 flex flex-wrap items-center gap-3">
      {budget || isBudgetSpent(session) ? (
        <RaiseBudget session={session} goOn />
      ) : (
        session.lastPrompt && (
          <Button size="sm" onClick={retry}>
            <RotateCcw className="size-3.5" aria-hidden />
            {t("common.retry")}
          </Button>
        )
      )}
      {problems.some((problem) => SIGN_IN.test(problem)) && (
        <a href="#/status" className="text-xs font-medium text-accent hover:underline">
          {t("result.signIn")}
        </a>
      )}
    </div>
  );
}

function useIsLast(sessionId: string, itemKey: string): boolean {
  return useApp(({ logs }) => logs.get(sessionId)?.transcript.items.at(-1)?.key === itemKey);
}

/** Why the model is asked again, how often that happens, and when. */
export function RetryNotice({ item, sessionId }: { item: NoticeItem; sessionId: string }) {
  const { t, i18n } = useTranslation();
  const { retry } = item;
  const running = useSession(sessionId)?.status === "running";
  const last = useIsLast(sessionId, item.key);
  const left = useCountdown(`${item.key}:${retry?.attempt}`, running && last ? retry?.delayMs : undefined);
  if (!retry) return null;
  const reason = t(`retry.reason.${retry.reason}`);
  const why = retry.status === undefined ? reason : t("retry.withStatus", { reason, status: retry.status });
  const { attempt, limit } = retry;
  const which =
    limit === undefined ? t("retry.attempt", { attempt }) : t("retry.attemptOf", { attempt, limit });
  if (left === undefined) return t("retry.over", { why, which });
  return left > 0
    ? t("retry.waiting", { why, which, time: formatClock(Math.ceil(left / 1000) * 1000, i18n.language) })
    : t("retry.now", { why, which });
}

/** When each wait was first seen here: the agent says how long it is, not when it began. */
const seen = new Map<string, number>();

/** The milliseconds that are left; `undefined` where nothing is waited for. */
function useCountdown(of: string, delayMs: number | undefined): number | undefined {
  const waiting = delayMs !== undefined;
  const now = useSeconds(waiting);
  useEffect(() => {
    if (waiting && !seen.has(of)) seen.set(of, serverTime());
  }, [of, waiting]);
  if (delayMs === undefined) return undefined;
  return Math.max(0, (seen.get(of) ?? now) + delayMs - now);
}
