import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { hasOlder, isAsked, isLoading, type SessionLog } from "../session/log";
import { projectRows, type Row } from "../session/rows";
import { loadOlder } from "../store/controller";
import { useApp } from "../store/hooks";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { RowView } from "./rows";

/** How near the end counts as being there, and how near the top calls for older entries. */
const END_THRESHOLD = 80;
const TOP_THRESHOLD = 600;

/** The list of a session, anchored at its end: new words are followed only by those who are reading them. */
export function Conversation({ session, log }: { session: SessionInfo; log: SessionLog }) {
  const { t } = useTranslation();
  const scroller = useRef<HTMLDivElement>(null);
  const sending = useApp((state) => state.outbox.sending.get(session.id));
  const rows = useMemo(() => projectRows(log, session.status, sending), [log, session.status, sending]);
  const keys = useStableKeys(rows);
  const getItemKey = useCallback((index: number) => keys[index] ?? index, [keys]);
  const [away, setAway] = useState(false);
  const older = hasOlder(log) && !isLoading(log);
  const loadingOlder = isAsked(log, "older");

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: (index) => estimate(rows[index]),
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: END_THRESHOLD,
    overscan: 6,
    gap: 14,
    paddingStart: 20,
    paddingEnd: 20,
    onChange: (instance) => setAway(!instance.isAtEnd(END_THRESHOLD)),
  });

  // Once for each session (the view is keyed by it): begin at the end.
  useLayoutEffect(() => virtualizer.scrollToEnd(), [virtualizer]);

  const first = virtualizer.range?.startIndex ?? 0;
  const nearTop = (virtualizer.scrollOffset ?? 0) < TOP_THRESHOLD;
  useEffect(() => {
    if (older && nearTop && !loadingOlder) loadOlder(session.id);
  }, [older, nearTop, first, loadingOlder, session.id]);

  const waiting = log.decisions.size > 0;
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        tabIndex={0}
        role="log"
        aria-label={t("conversation.label")}
        aria-live="off"
        className="h-full overflow-y-auto -outline-offset-2 [overflow-anchor:none]"
      >
        {loadingOlder && (
          <p role="status" className="absolute inset-x-0 top-0 z-10 py-2 text-center text-xs text-ink-3">
            {t("conversation.loadingOlder")}
          </p>
        )}
        <div className="relative mx-auto w-full max-w-[52rem]" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index];
            return (
              row && (
                <div
                  key={item.key}
                  data-index={item.index}
                  ref={virtualizer.measureElement}
                  className="absolute inset-x-0 top-0 px-3 sm:px-10"
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  <ErrorBoundary>
                    <RowView row={row} sessionId={session.id} cwd={session.cwd} />
                  </ErrorBoundary>
                </div>
              )
            );
          })}
        </div>
      </div>
      {away && (
        <button
          type="button"
          onClick={() => virtualizer.scrollToEnd({ behavior: "smooth" })}
          className="absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 animate-rise items-center gap-1.5 rounded-full border border-line-strong bg-raised px-3.5 text-xs font-medium shadow-pop hover:bg-sunken"
        >
          <ArrowDown className="size-3.5" aria-hidden />
          {waiting ? t("conversation.toDecision") : t("conversation.toEnd")}
        </button>
      )}
    </div>
  );
}

/** The same array for as long as the keys are the same: a new one makes the list measure everything again. */
function useStableKeys(rows: readonly Row[]): readonly string[] {
  const [keys, setKeys] = useState<readonly string[]>(() => rows.map((row) => row.key));
  const same = keys.length === rows.length && rows.every((row, index) => row.key === keys[index]);
  if (same) return keys;
  const next = rows.map((row) => row.key);
  setKeys(next);
  return next;
}

/** A first guess, mended as soon as the row has been measured. */
function estimate(row: Row | undefined): number {
  if (row?.kind !== "item") return 40;
  const { item } = row;
  switch (item.kind) {
    case "text":
      return 24 + Math.ceil(item.text.length / 90) * 24;
    case "prompt":
      return 56 + Math.floor(item.text.length / 90) * 24;
    case "tool":
      return row.decision ? 220 : 120;
    default:
      return 30;
  }
}
