import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, FileText } from "lucide-react";
import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import { expand } from "../../ui/expansion";
import { RawSource } from "../../tools/rawSource";
import { RowView } from "../conversation/rows";
import { useFollowEnd } from "../conversation/useFollowEnd";
import type { Branch, TranscriptEntry } from "../../gen/history";
import { cn } from "../../lib/cn";
import { formatBytes } from "../../lib/format";
import type { Item } from "../../session/items";
import { decidedOf, openLog } from "../../session/log";
import { groupQuiet } from "../../session/quiet";
import { type ItemRow, projectRows, type Row } from "../../session/rows";
import { append, emptyTranscript } from "../../session/transcript";
import { ErrorBoundary } from "../../ui/ErrorBoundary";
import { IconButton } from "../../ui/IconButton";
import { tellFailure } from "../../ui/toasts";
import { openText } from "../../wire/files";
import { resultAddress } from "../../wire/history";
import { entriesOf, indexOf } from "../../session/transcriptEntries";
import { useIsLive } from "./SessionRow";
import type { Reading } from "./useTranscript";

/** How near an edge calls for more. */
const EDGE = 800;

interface Shown {
  readonly row: Row;
  /** The lines that it came from. */
  readonly lines: readonly TranscriptEntry[];
  /** Set for the first row of a stretch that the model no longer sees. */
  readonly begins: Branch | undefined;
  readonly branch: Branch | undefined;
}

interface TranscriptProps {
  reading: Reading;
  at: string | undefined;
  onOlder: () => void;
  onNewer: () => void;
}

/** The messages of a transcript, in the same cards as in a running session. */
export function Transcript({ reading, at, onOlder, onNewer }: TranscriptProps) {
  const { t } = useTranslation();
  const { session, entries: lines, first, total } = reading;
  const live = useIsLive(session);
  const transcript = useMemo(() => {
    const entries = entriesOf(lines, first);
    const end = { kind: "status" as const, seq: Number.MAX_SAFE_INTEGER, status: "completed" as const };
    // Where nobody works any more, a call without a result will not get one.
    return append(emptyTranscript, live ? entries : [...entries, end]);
  }, [lines, first, live]);
  const rows = useMemo(() => {
    const log = { ...openLog(0, 0), transcript, decided: decidedOf(reading.decided) };
    return withBranches(projectRows(log, "completed"), lines, first);
  }, [transcript, lines, first, reading.decided]);

  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const getItemKey = useCallback((index: number) => rows[index]?.row.key ?? index, [rows]);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: () => 90,
    anchorTo: "end",
    overscan: 6,
    gap: 14,
    paddingStart: 20,
    paddingEnd: 20,
  });

  // Opened at a message: it comes into sight once, as soon as it is there, and so does what is folded away in it.
  const wanted = at === undefined ? -1 : rows.findIndex((row) => row.lines.some(({ uuid }) => uuid === at));
  const shown = useRef(false);
  useLayoutEffect(() => {
    if (shown.current || wanted < 0) return;
    shown.current = true;
    const row = rows[wanted]?.row;
    const has = (item: Item) => item.seqs.some((seq) => lines[indexOf(seq, first)]?.uuid === at);
    if (row?.kind === "group") expand(row.key);
    for (const { item, children } of row ? itemsOf(row) : []) {
      if (row?.kind === "item" || has(item)) expand(item.key);
      for (const child of children.filter(has)) expand(child.key);
    }
    virtualizer.scrollToIndex(wanted, { align: "center" });
  }, [wanted, virtualizer, rows, lines, first, at]);

  const offset = virtualizer.scrollOffset ?? 0;
  const left = virtualizer.getTotalSize() - offset - (virtualizer.scrollRect?.height ?? 0);
  const nearTop = offset < EDGE && first > 0;
  const nearEnd = left < EDGE && first + lines.length < total;
  useEffect(() => {
    if (nearTop) onOlder();
  }, [nearTop, first, onOlder]);
  useEffect(() => {
    if (nearEnd) onNewer();
  }, [nearEnd, lines.length, onNewer]);

  return (
    <RawSource value={transcript}>
      <div className="relative min-h-0 flex-1">
        <div
          ref={scroller}
          tabIndex={0}
          role="log"
          aria-label={t("conversation.label")}
          aria-live="off"
          className="h-full overflow-x-clip overflow-y-auto -outline-offset-2 [overflow-anchor:none]"
        >
          <div
            ref={content}
            className="relative mx-auto w-full max-w-[52rem]"
            style={{ height: virtualizer.getTotalSize() }}
          >
            {virtualizer.getVirtualItems().map((item) => {
              const each = rows[item.index];
              return (
                each && (
                  <div
                    key={item.key}
                    data-index={item.index}
                    ref={virtualizer.measureElement}
                    className="absolute inset-x-0 top-0 px-3 sm:px-10"
                    style={{ transform: `translateY(${item.start}px)` }}
                  >
                    <ErrorBoundary>
                      <ShownRow
                        shown={each}
                        sessionId={session.id}
                        cwd={session.project_path}
                        wanted={item.index === wanted}
                      />
                    </ErrorBoundary>
                  </div>
                )
              );
            })}
          </div>
        </div>
        {at === undefined && <FollowEnd scroller={scroller} content={content} />}
      </div>
    </RawSource>
  );
}

/** Keeps to the end while the conversation grows, for those who read there. */
function FollowEnd({
  scroller,
  content,
}: {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
}) {
  const { t } = useTranslation();
  const { away, toEnd } = useFollowEnd(scroller, content);
  return (
    away && (
      <IconButton
        label={t("conversation.toEnd")}
        onClick={toEnd}
        className="absolute right-2 bottom-2 size-8 animate-rise rounded-full border border-line-strong bg-raised shadow-pop sm:right-[max(0.5rem,calc(50%-25.75rem))]"
      >
        <ArrowDown className="size-4" />
      </IconButton>
    )
  );
}

function ShownRow({
  shown,
  sessionId,
  cwd,
  wanted,
}: {
  shown: Shown;
  sessionId: string;
  cwd: string;
  wanted: boolean;
}) {
  const { t, i18n } = useTranslation();
  const whole = shown.lines.flatMap((line) => line.whole_results ?? []);
  return (
    <div
      data-wanted={wanted || undefined}
      className={cn(
        wanted && "rounded-xl outline-2 outline-offset-4 outline-wait/70",
        shown.branch && "border-l-2 border-dashed border-line-strong pl-3",
      )}
    >
      {shown.begins && (
        <p className="mb-2 text-xs font-medium text-ink-3">{t(`history.branch.${shown.begins}`)}</p>
      )}
      <RowView row={shown.row} sessionId={sessionId} cwd={cwd} />
      {whole.map(({ name, size }) => (
        <button
          key={name}
          type="button"
          onClick={() => void openText(resultAddress(sessionId, name)).catch(tellFailure)}
          className="mt-1.5 inline-flex items-center gap-1.5 rounded-md px-1 text-xs font-medium text-accent hover:underline"
        >
          <FileText className="size-3.5" aria-hidden />
          {t("history.read.whole", { size: formatBytes(size, i18n.language) })}
        </button>
      ))}
    </div>
  );
}

const itemsOf = (row: Row): readonly ItemRow[] =>
  row.kind === "item" ? [row] : row.kind === "group" ? row.rows : [];

function withBranches(rows: readonly Row[], lines: readonly TranscriptEntry[], first: number): Shown[] {
  const linesOf = (seqs: readonly number[]) => seqs.flatMap((seq) => lines[indexOf(seq, first)] ?? []);
  const ownLines = (row: Row) => linesOf(itemsOf(row).flatMap(({ item }) => item.seqs));
  const branchOf = (row: Row) => ownLines(row).find((line) => line.branch)?.branch;
  let before: Branch | undefined;
  return groupQuiet(rows, branchOf).map((row) => {
    const own = ownLines(row);
    const nested = linesOf(itemsOf(row).flatMap(({ children }) => children.flatMap(({ seqs }) => seqs)));
    const branch = branchOf(row);
    const begins = branch !== before ? branch : undefined;
    before = branch;
    return { row, lines: [...own, ...nested], branch, begins };
  });
}
