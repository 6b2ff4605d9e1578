import { ChevronDown, ChevronUp, Search, X } from "lucide-react";
import { type KeyboardEvent, type RefObject, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { type Finding, findingsOf, rowOf } from "../../session/findings";
import { hasOlder, type SessionLog } from "../../session/log";
import type { Row } from "../../session/rows";
import { loadOlder } from "../../store/controller";
import { closeFind, lookFor, useFinding } from "../../store/finding";
import { find } from "../../store/inquiries";
import { focusComposer } from "../../ui/focus";
import { IconButton } from "../../ui/IconButton";
import { useHighlight } from "./useHighlight";

export interface FindBarProps {
  session: SessionInfo;
  log: SessionLog;
  rows: readonly Row[];
  scroller: RefObject<HTMLElement | null>;
  onShow: (index: number) => void;
}

export function FindBar(props: FindBarProps) {
  const open = useFinding((state) => state.session === props.session.id);
  return open && <Bar {...props} />;
}

function close(): void {
  closeFind();
  focusComposer();
}

const TYPING_PAUSE_MS = 150;

interface Results {
  readonly query: string;
  readonly state: "known" | "failed";
  readonly findings: readonly Finding[];
  readonly more: boolean;
}

/** Finds words in all of a conversation: the list draws only what is in view, and the page may not have loaded the rest. */
function Bar({ session, log, rows, scroller, onShow }: FindBarProps) {
  const { t } = useTranslation();
  const { query, asked } = useFinding();
  const field = useRef<HTMLInputElement>(null);
  const results = useResults(session.id, query, session.lastSeq);
  const findings = results?.findings ?? NONE;
  const [place, setPlace] = useState<{ query: string; at: number }>();
  // The last one is the nearest to where the reader is.
  const at = place?.query === results?.query ? (place?.at ?? -1) : findings.length - 1;
  const current = findings[at];
  const index = current ? rowOf(rows, current) : -1;
  /** Where what is loaded begins, if what is to be shown stands before it. */
  const missing = hasOlder(log) && current !== undefined && current.seq < log.first ? log.first : undefined;

  useEffect(() => {
    if (asked === 0) return;
    field.current?.focus();
    field.current?.select();
  }, [asked]);

  // What is not loaded yet is loaded until it is there.
  useEffect(() => {
    if (missing !== undefined) loadOlder(session.id);
  }, [missing, session.id]);
  const shown = current && `${results?.query} ${current.seq}`;
  const key = rows[index]?.key;
  const latest = useRef({ index, onShow });
  useEffect(() => {
    latest.current = { index, onShow };
  });
  useEffect(() => {
    if (shown !== undefined && key !== undefined) latest.current.onShow(latest.current.index);
  }, [shown, key]);
  useHighlight(scroller, query, index);

  function go(step: 1 | -1): void {
    if (findings.length === 0 || !results) return;
    setPlace({ query: results.query, at: (at + step + findings.length) % findings.length });
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") close();
    else if (event.key === "Enter" || event.key === "F3") go(event.shiftKey ? -1 : 1);
    else if (event.key === "ArrowDown") go(1);
    else if (event.key === "ArrowUp") go(-1);
    else return;
    event.preventDefault();
  }

  const empty = query.trim() === "";
  const count = { at: at + 1, total: findings.length };
  const told =
    results?.query !== query
      ? t("find.searching")
      : results.state === "failed"
        ? t("find.failed")
        : findings.length === 0
          ? t("find.none")
          : results.more
            ? t("find.more", count)
            : t("find.count", count);
  return (
    <search className="absolute top-2 right-2 left-2 z-20 flex items-center gap-1 rounded-xl border border-line-strong bg-raised py-1 pr-1 pl-3 shadow-pop sm:left-auto sm:w-96">
      <Search className="size-4 shrink-0 text-ink-3" aria-hidden />
      <input
        ref={field}
        type="search"
        aria-label={t("find.label")}
        placeholder={t("find.hint")}
        value={query}
        onChange={(event) => lookFor(event.target.value)}
        onKeyDown={onKeyDown}
        className="h-8 min-w-0 flex-1 bg-transparent px-1.5 text-sm outline-none [&::-webkit-search-cancel-button]:hidden"
      />
      <span role="status" className="shrink-0 text-xs text-ink-3 tabular-nums">
        {!empty && told}
      </span>
      <IconButton label={t("find.previous")} disabled={findings.length === 0} onClick={() => go(-1)}>
        <ChevronUp className="size-4" />
      </IconButton>
      <IconButton label={t("find.next")} disabled={findings.length === 0} onClick={() => go(1)}>
        <ChevronDown className="size-4" />
      </IconButton>
      <IconButton label={t("common.close")} onClick={close}>
        <X className="size-4" />
      </IconButton>
    </search>
  );
}

const NONE: readonly Finding[] = [];

/** Asked again when the conversation has grown: what was found may have become more. */
function useResults(sessionId: string, query: string, lastSeq: number): Results | undefined {
  const [results, setResults] = useState<Results>();
  useEffect(() => {
    if (query.trim() === "" || lastSeq === 0) return undefined;
    let current = true;
    const timer = setTimeout(() => {
      find(sessionId, query).then(
        ({ matches, more }) =>
          current && setResults({ query, state: "known", findings: findingsOf(matches), more }),
        () => current && setResults({ query, state: "failed", findings: [], more: false }),
      );
    }, TYPING_PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [sessionId, query, lastSeq]);
  return query.trim() === "" ? undefined : results;
}
