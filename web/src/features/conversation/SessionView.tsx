import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { InfoBar } from "./InfoBar";
import { HookCalls } from "../hooks/HookCalls";
import { Panel } from "../panel/Panel";
import { cn } from "../../lib/cn";
import { usePanel } from "../../store/panel";
import { hasOlder, isLoading } from "../../session/log";
import { emptySummary } from "../../session/summary";
import { useMarkSeen } from "../../store/seen";
import type { Transcript } from "../../session/transcript";
import { lookUp, openSession } from "../../store/controller";
import { isComplete, isPartial } from "../../store/listing";
import { useApp, useLog, useSession } from "../../store/hooks";
import { useBeginsAnew } from "./beginsAnew";
import { sinceCleared, useClearedUpTo } from "../../store/cleared";
import { Composer } from "./Composer";
import { Conversation } from "./Conversation";
import { Damaged } from "./Damaged";
import { DrivenElsewhere } from "./DrivenElsewhere";
import { Opening } from "../../ui/Opening";
import { StatisticsBar } from "./StatisticsBar";

/** `beside`: something else is shown beside it, so there is less room. */
export function SessionView({ id, beside = false }: { id: string; beside?: boolean }) {
  const session = useSession(id);
  const log = useLog(id);
  const partial = useApp((state) => isPartial(state.listing));
  const missing = useApp((state) => isComplete(state.listing) && state.expected !== id);
  const panelOpen = usePanel((state) => (beside ? state.over === id : state.open));
  const known = session !== undefined;
  const damaged = session?.damaged === true;
  // Panel and totals may be drawn a moment after the conversation.
  const calm = useDeferredValue(useSettled(log?.transcript));
  const cleared = useClearedUpTo(id);
  const anew = useBeginsAnew(id);
  const shown = useMemo(() => calm && sinceCleared(calm, cleared, anew), [calm, cleared, anew]);
  useMarkSeen(session);

  useEffect(() => {
    if (!known && partial) lookUp(id);
  }, [id, known, partial]);
  useEffect(() => {
    if (!known) return;
    // Nothing of a damaged session can be read.
    if (!damaged) openSession(id);
  }, [id, known, damaged]);

  // After the view was cleared, the next prompt starts a new session.
  const summary = (!anew && session?.summary) || emptySummary;

  if (!session) return missing ? <Missing /> : <Opening />;
  if (damaged) return <Damaged session={session} />;
  return (
    <>
      <InfoBar session={session} beside={beside} />
      <div
        className={cn("relative flex min-h-0 flex-1", beside && "[&>aside]:absolute [&>aside]:shadow-pop")}
      >
        <div className="flex min-w-0 flex-1 flex-col">
          {/* Drawn once the whole first page is there, instead of again with each part of it. */}
          {!log || isLoading(log) ? <Opening /> : <Conversation key={id} session={session} log={log} />}
          <HookCalls sessionId={id} />
          {shown && <StatisticsBar session={session} summary={summary} transcript={shown} />}
          <DrivenElsewhere session={session} />
          <Composer key={`composer:${id}`} session={session} />
        </div>
        {panelOpen && (
          <Panel
            key={`panel:${id}`}
            session={session}
            summary={summary}
            transcript={shown}
            whole={log !== undefined && !hasOlder(log)}
            anew={anew}
          />
        )}
      </div>
    </>
  );
}

/** The transcript as of its last whole message: streamed text does not change panel and totals. */
function useSettled(transcript: Transcript | undefined): Transcript | undefined {
  const [settled, setSettled] = useState(transcript);
  if (settled?.entries === transcript?.entries) return settled;
  setSettled(transcript);
  return transcript;
}

function Missing() {
  const { t } = useTranslation();
  return (
    <div className="m-auto max-w-sm px-6 text-center">
      <h1 className="text-base font-semibold">{t("session.missing.title")}</h1>
      <p className="mt-1 text-sm text-ink-2">{t("session.missing.text")}</p>
      <a href="#/new" className="mt-4 inline-block text-sm font-medium text-accent hover:underline">
        {t("nav.new")}
      </a>
    </div>
  );
}
