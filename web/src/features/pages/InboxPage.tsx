import { ArrowUpRight, CircleCheckBig } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { decisionBorder } from "../../ui/decisionBorder";
import { DecisionPanel } from "../decisions/Decision";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { HookPanel } from "../hooks/HookCalls";
import { useHooks } from "../../store/hookCalls";
import { baseName } from "../../lib/format";
import type { SessionLog } from "../../session/log";
import { openSession } from "../../store/controller";
import { useApp, useLog } from "../../store/hooks";
import { useQueue } from "../../store/queue";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import type { Json } from "../../wire/json";
import { Empty, Page } from "../../ui/Page";

/** Everything that waits for the user, in all sessions, to be answered in one place. */
export function InboxPage() {
  const { t } = useTranslation();
  const queue = useQueue((state) => state.queue);
  const sessions = useApp((state) => state.sessions);
  const waiting = queue.flatMap(({ id }) => sessions.get(id) ?? []);
  return (
    <Page page="inbox">
      {waiting.length === 0 ? (
        <Empty title={t("inbox.empty")}>
          <CircleCheckBig className="mx-auto mt-3 size-6 text-good" aria-hidden />
        </Empty>
      ) : (
        <div className="flex flex-col gap-8">
          {waiting.map((session) => (
            <SessionDecisions key={session.id} session={session} />
          ))}
        </div>
      )}
    </Page>
  );
}

function callOf(log: SessionLog, toolUseId: string): Json | undefined {
  const at = log.transcript.toolAt.get(toolUseId);
  const item = at === undefined ? undefined : log.transcript.items[at];
  return item?.kind === "tool" ? item.input : undefined;
}

function SessionDecisions({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  const log = useLog(session.id);
  useEffect(() => openSession(session.id), [session.id]);
  const decisions = [...(log?.decisions.values() ?? [])];
  const calls = useHooks((state) => state.calls).filter((call) => call.sessionId === session.id);
  return (
    <section aria-label={session.title}>
      <h2 className="flex items-baseline gap-2 text-sm">
        <a
          href={`#/s/${session.id}`}
          className="flex min-w-0 items-center gap-1 font-semibold hover:underline"
        >
          <span className="truncate">{session.title}</span>
          <ArrowUpRight className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        </a>
        <span className="shrink-0 font-mono text-xs text-ink-3">{baseName(session.cwd)}</span>
      </h2>
      <div className="mt-2 flex flex-col gap-3">
        {calls.map((call) => (
          <HookPanel key={call.callbackId} call={call} />
        ))}
        {decisions.length === 0 && session.pending > 0 && (
          <p className="text-sm text-ink-3">{t("common.loading")}</p>
        )}
        {decisions.map((decision) => (
          <div
            key={decision.request.requestId}
            className={cn(
              "overflow-hidden rounded-xl border bg-raised shadow-card",
              decisionBorder(decision.request.toolName),
            )}
          >
            <ErrorBoundary>
              <DecisionPanel
                decision={decision}
                call={log && callOf(log, decision.request.toolUseId)}
                cwd={session.cwd}
              />
            </ErrorBoundary>
          </div>
        ))}
      </div>
    </section>
  );
}
