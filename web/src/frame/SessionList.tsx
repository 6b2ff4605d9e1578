import { useVirtualizer } from "@tanstack/react-virtual";
import { ListFilter, X } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useHooks } from "../store/hookCalls";
import { cn } from "../lib/cn";
import { filterSessions, type SessionFilter, sessionFilters } from "../store/filter";
import { useSeenState } from "../store/seen";
import { useApp, useSessionList } from "../store/hooks";
import { loadMoreSessions } from "../store/controller";
import { useRoute } from "../store/route";
import { Dropdown, DropdownChoice } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { useNavigation } from "../store/navigation";
import { SessionEntry } from "./SessionEntry";

const ROW_HEIGHT = 46;
/** How many rows before the end more are asked for. */
const NEAR_END = 20;

/** All sessions, however many: only those in sight are drawn. */
export function SessionList() {
  const { t } = useTranslation();
  const { listed, cursor } = useApp((state) => state.listing);
  const all = useSessionList();
  const seen = useSeenState();
  const route = useRoute();
  const closeNarrow = useNavigation((state) => state.closeNarrow);
  const [words, setWords] = useState("");
  const [filter, setFilter] = useState<SessionFilter>("all");
  const calls = useHooks((state) => state.calls);
  const sessions = useMemo(() => {
    const calling = new Set(calls.map((call) => call.sessionId));
    return filterSessions(all, filter, words, { seen, calling });
  }, [all, filter, words, seen, calls]);
  const scroller = useRef<HTMLDivElement>(null);
  const getItemKey = useCallback((index: number) => sessions[index]?.id ?? index, [sessions]);
  const virtualizer = useVirtualizer({
    count: sessions.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
    gap: 1,
    paddingEnd: 8,
  });
  // More is loaded when the end comes near, and all of it for those who look for something.
  const end = virtualizer.range?.endIndex ?? 0;
  const wantsMore =
    cursor !== undefined && (filter !== "all" || words !== "" || end >= sessions.length - NEAR_END);
  useEffect(() => {
    if (wantsMore) loadMoreSessions();
  }, [wantsMore, cursor]);
  // The session that is open stays in sight, however it was opened.
  const current = route.view === "session" ? sessions.findIndex((session) => session.id === route.id) : -1;
  const shown = route.view === "session" ? route.id : undefined;
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current, { align: "auto" });
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- only when another one is opened, not when the list moves
  }, [shown, listed]);
  return (
    <section aria-label={t("nav.sessions")} className="flex min-h-24 flex-1 flex-col border-t border-line">
      <div className="flex shrink-0 items-center gap-1 px-2.5 py-1.5">
        <div className="relative min-w-0 flex-1">
          <input
            type="search"
            aria-label={t("list.search")}
            placeholder={t("list.search")}
            value={words}
            onChange={(event) => setWords(event.target.value)}
            className="h-7.5 w-full rounded-lg bg-transparent px-2.5 text-sm outline-none placeholder:text-ink-3 hover:bg-hover focus-visible:bg-hover pointer-coarse:h-10 [&::-webkit-search-cancel-button]:hidden"
          />
          {words !== "" && (
            <button
              type="button"
              aria-label={t("list.clear")}
              onClick={() => setWords("")}
              className="absolute top-1/2 right-1 flex size-5 -translate-y-1/2 items-center justify-center rounded text-ink-3 hover:text-ink"
            >
              <X className="size-3.5" aria-hidden />
            </button>
          )}
        </div>
        <Dropdown
          label={t("list.filter.label")}
          trigger={<ListFilter className="size-4" />}
          triggerClassName={cn(iconButtonClass, filter !== "all" && "bg-accent-soft text-accent")}
        >
          <DropdownChoice<SessionFilter>
            label={t("list.filter.label")}
            value={filter}
            onChange={setFilter}
            options={sessionFilters.map((value) => ({ value, label: t(`list.filter.${value}`) }))}
          />
        </Dropdown>
      </div>
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto px-2.5">
        {!listed && <ListSkeleton />}
        {listed && sessions.length === 0 && (
          <p className="px-2.5 py-1 text-sm text-ink-3">
            {cursor !== undefined
              ? t("list.searching")
              : all.length === 0
                ? t("nav.empty")
                : t("list.nothing")}
          </p>
        )}
        <ul className="relative" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const session = sessions[item.index];
            return (
              session && (
                <SessionEntry
                  key={item.key}
                  session={session}
                  top={item.start}
                  current={route.view === "session" && route.id === session.id}
                  onOpen={closeNarrow}
                />
              )
            );
          })}
        </ul>
      </div>
    </section>
  );
}

function ListSkeleton() {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t("common.loading")} className="flex flex-col gap-3 px-2.5 py-2">
      {["w-4/5", "w-3/5", "w-2/3"].map((width) => (
        <span key={width} className={`h-3.5 animate-breathe rounded bg-active ${width}`} />
      ))}
    </div>
  );
}
