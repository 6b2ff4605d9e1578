import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { hasOlder, isAsked, isLoading, type SessionLog } from "../../session/log";
import { groupQuiet } from "../../session/quiet";
import { projectRows, type Row } from "../../session/rows";
import { loadOlder } from "../../store/controller";
import { useSending } from "../../store/hooks";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { IconButton } from "../../ui/IconButton";
import { useEarlier } from "./earlier";
import { onDemand } from "../../lib/onDemand";
import type { FindBarProps } from "./FindBar";
import { useBeginsAnew } from "./beginsAnew";
import { showAll, useClearedUpTo } from "../../store/cleared";
import { QuoteButton } from "./QuoteButton";
import { RawSource } from "../../tools/rawSource";
import { RowView } from "./rows";
import { useFollowEnd } from "./useFollowEnd";

/** How near the top calls for older entries. */
const TOP_THRESHOLD = 600;

/** Nobody searches in the first moment. */
const FindBar = onDemand<FindBarProps>(
  async () => ({ default: (await import("./FindBar")).FindBar }),
  () => null,
);

/** The list of a session, anchored at its end: new words are followed only by those who are reading them. */
export function Conversation({ session, log }: { session: SessionInfo; log: SessionLog }) {
  const { t } = useTranslation();
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const sending = useSending(session.id);
  const lastSent = sending.at(-1)?.promptId;
  const cleared = useClearedUpTo(session.id);
  const anew = useBeginsAnew(session.id);
  const earlier = useEarlier(session, log.transcript, !hasOlder(log) && !isLoading(log));
  const rows = useMemo(() => {
    const own = groupQuiet(
      projectRows(log, session.status, sending, session.rewound).filter((row) => isNewer(row, cleared)),
    );
    return cleared === 0 ? [...earlier.rows, ...own] : own;
  }, [log, session.status, session.rewound, sending, cleared, earlier]);
  const keys = useStableKeys(rows);
  const getItemKey = useCallback((index: number) => keys[index] ?? index, [keys]);
  const older = hasOlder(log) && !isLoading(log) && cleared === 0;
  const loadingOlder = isAsked(log, "older");

  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: (index) => estimate(rows[index]),
    anchorTo: "end",
    overscan: 6,
    gap: 14,
    paddingStart: 20,
    paddingEnd: 20,
  });
  const { away, toEnd, leave } = useFollowEnd(scroller, content);

  // Who sends something wants to see what comes of it.
  useEffect(() => {
    if (lastSent !== undefined) toEnd();
  }, [lastSent, toEnd]);

  const show = useCallback(
    (index: number) => {
      leave();
      virtualizer.scrollToIndex(index, { align: "center" });
    },
    [leave, virtualizer],
  );

  const first = virtualizer.range?.startIndex ?? 0;
  const nearTop = (virtualizer.scrollOffset ?? 0) < TOP_THRESHOLD;
  useEffect(() => {
    // The list has just been drawn, and may be on its way to its end: what counts is where it stands by now.
    const stands = scroller.current?.scrollTop ?? Infinity;
    if (older && nearTop && stands < TOP_THRESHOLD && !loadingOlder) loadOlder(session.id);
  }, [older, nearTop, first, loadingOlder, session.id]);

  const waiting = log.decisions.size > 0;
  return (
    <>
      <div className="relative min-h-0 flex-1">
        <FindBar session={session} log={log} rows={rows} scroller={scroller} onShow={show} />
        <div
          ref={scroller}
          tabIndex={0}
          role="log"
          aria-label={t("conversation.label")}
          aria-live="off"
          className="h-full overflow-x-clip overflow-y-auto -outline-offset-2 [overflow-anchor:none]"
        >
          {cleared > 0 && (
            <div className="flex flex-col items-center gap-2 px-4 pt-3 text-center">
              <button
                type="button"
                onClick={() => showAll(session.id)}
                className="rounded-full border border-line px-3 py-1 text-xs text-ink-2 hover:bg-hover"
              >
                {t("conversation.showCleared")}
              </button>
              {anew && <p className="text-xs text-ink-3">{t("conversation.beginsAnew")}</p>}
            </div>
          )}
          {loadingOlder && (
            <p role="status" className="absolute inset-x-0 top-0 z-10 py-2 text-center text-xs text-ink-3">
              {t("conversation.loadingOlder")}
            </p>
          )}
          <div
            ref={content}
            className="relative mx-auto w-full max-w-[52rem]"
            style={{ height: virtualizer.getTotalSize() }}
          >
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
                      <RawSource value={earlier.rows[item.index] === row ? earlier.transcript : undefined}>
                        <RowView row={row} sessionId={session.id} cwd={session.cwd} />
                      </RawSource>
                    </ErrorBoundary>
                  </div>
                )
              );
            })}
          </div>
        </div>
        {away && !waiting && (
          <IconButton
            label={t("conversation.toEnd")}
            onClick={toEnd}
            // Beside the column where there is room, so that it lies over no words.
            className="absolute right-2 bottom-2 size-8 animate-rise rounded-full border border-line-strong bg-raised shadow-pop sm:right-[max(0.5rem,calc(50%-25.75rem))]"
          >
            <ArrowDown className="size-4" />
          </IconButton>
        )}
      </div>
      <QuoteButton sessionId={session.id} scroller={scroller} />
      {away && waiting && (
        <button
          type="button"
          onClick={toEnd}
          className="mx-auto mb-2 flex h-8 shrink-0 items-center gap-1.5 rounded-full border border-wait/60 bg-wait-soft px-3.5 text-xs font-medium text-wait hover:bg-hover"
        >
          <ArrowDown className="size-3.5" aria-hidden />
          {t("conversation.toDecision")}
        </button>
      )}
    </>
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

/** What came after the view was cleared, and all that waits for someone. */
function isNewer(row: Row, cleared: number): boolean {
  return row.kind !== "item" || row.decision !== undefined || row.item.seqs.some((seq) => seq > cleared);
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
