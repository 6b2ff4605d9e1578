import { useVirtualizer } from "@tanstack/react-virtual";
import { FolderPlus, ListFilter, X } from "lucide-react";
import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Sorting } from "../gen/events";
import { cn } from "../lib/cn";
import { GroupDialog } from "../features/settings/GroupDialog";
import { tellOffline } from "../features/settings/offline";
import { moveGroup, moveSession, sortBy } from "../store/arrange";
import { type SessionFilter, sessionFilters } from "../store/filter";
import { useFolded } from "../store/folded";
import { useApp } from "../store/hooks";
import { loadMoreSessions } from "../store/controller";
import { groupOf, type Move, stepTo } from "../store/moves";
import { useNavigation } from "../store/navigation";
import { openBeside } from "../store/panes";
import { useRoute } from "../store/route";
import type { ListRow, Section } from "../store/sections";
import { Dropdown, DropdownChoice, DropdownItem, DropdownSeparator } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { toasts } from "../ui/toasts";
import { SectionHeader } from "./SectionHeader";
import { hasTwoLines, SessionEntry } from "./SessionEntry";
import { useListDrag } from "./useListDrag";
import { useListKeys } from "./useListKeys";
import { useSessionRows } from "./useSessionRows";

/** How many rows before the end more are asked for. */
const NEAR_END = 20;

const coarse = () => matchMedia("(pointer: coarse)").matches;

/** Made for fingers, rows are higher. */
function heightOf(row: ListRow | undefined, first: boolean): number {
  if (row?.kind === "header") return (coarse() ? 40 : 28) + (first ? 0 : 10);
  if (row?.kind === "more") return coarse() ? 40 : 28;
  return row && hasTwoLines(row.section.kind) ? 46 : coarse() ? 42 : 31;
}

/** All sessions, however many: only those in sight are drawn. */
export function SessionList() {
  const { t } = useTranslation();
  const { listed, cursor } = useApp((state) => state.listing);
  const sorting = useApp((state) => state.arrangement.sorting);
  const route = useRoute();
  const closeNarrow = useNavigation((state) => state.closeNarrow);
  const toggleFolded = useFolded((state) => state.toggle);
  const [words, setWords] = useState("");
  const [filter, setFilter] = useState<SessionFilter>("all");
  const [whole, setWhole] = useState<ReadonlySet<string>>(new Set());
  const [making, setMaking] = useState(false);
  const shown = route.view === "session" ? route.id : undefined;
  const { rows, any } = useSessionRows(filter, words, whole, shown);
  const scroller = useRef<HTMLDivElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const getItemKey = useCallback((index: number) => rows[index]?.key ?? index, [rows]);
  const estimateSize = useCallback((index: number) => heightOf(rows[index], index === 0), [rows]);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    getItemKey,
    estimateSize,
    overscan: 8,
    gap: 1,
    paddingEnd: 8,
  });
  // Heights are known, not measured: they belong to the rows, which move.
  useEffect(() => virtualizer.measure(), [virtualizer, estimateSize]);

  // More is loaded when the end comes near, and all of it for those who look for something.
  const end = virtualizer.range?.endIndex ?? 0;
  const looking = filter !== "all" || words !== "";
  const wantsMore = cursor !== undefined && (looking || end >= rows.length - NEAR_END);
  useEffect(() => {
    if (wantsMore) loadMoreSessions();
  }, [wantsMore, cursor]);

  // The session that is open stays in sight, however it was opened.
  const current = rows.findIndex((row) => row.key === shown);
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current, { align: "auto" });
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- only when another one is opened or a search ends, not when the list moves
  }, [shown, listed, looking]);

  function toggle(row: ListRow, open?: boolean): void {
    if (row.kind === "header") toggleFolded(row.section.key, open);
    if (row.kind === "more") setWhole(new Set(whole).add(row.section.key));
  }

  function put(row: ListRow, move: Move): void {
    if (row.kind !== "session") return;
    if (move.kind === "sorted") offerOwnOrder();
    else if (!moveSession(row.session, move)) tellOffline();
  }

  function offerOwnOrder(): void {
    const toast = toasts.add({
      title: t("list.sorted"),
      actionProps: {
        children: t("list.useOwn"),
        onClick() {
          toasts.close(toast);
          if (!sortBy("own")) tellOffline();
        },
      },
    });
  }

  const keys = useListKeys(rows, scroller, shown, {
    scrollTo: (index) => virtualizer.scrollToIndex(index, { align: "auto" }),
    toggle,
    move(row, step) {
      if (row.kind === "header") {
        stepGroup(row.section, step);
        return;
      }
      const move = stepTo(rows, row.key, step, sorting);
      if (move) put(row, move);
    },
    openBeside: (row) => row.kind === "session" && openBeside({ kind: "session", id: row.session.id }),
  });

  const groups = useMemo(
    () => rows.flatMap((row) => (row.kind === "header" ? (groupOf(row.section) ?? []) : [])),
    [rows],
  );

  function stepGroup(section: Section, step: 1 | -1): void {
    const id = groupOf(section);
    const to = id === undefined ? -1 : groups.indexOf(id) + step;
    if (id !== undefined && to >= 0 && to < groups.length && !moveGroup(id, to)) tellOffline();
  }

  const drag = useListDrag(sorting, put, (dragged, target, side) => {
    const [id, before] = [groupOf(dragged), groupOf(target)];
    if (id === undefined || before === undefined) return;
    const others = groups.filter((each) => each !== id);
    if (!moveGroup(id, others.indexOf(before) + (side === "after" ? 1 : 0))) tellOffline();
  });

  function onSearchKey(event: KeyboardEvent<HTMLInputElement>): void {
    if (event.nativeEvent.isComposing) return;
    const first = rows.findIndex((row) => row.kind === "session");
    if (event.key === "ArrowDown" && rows.length > 0) keys.focusAt(Math.max(0, first));
    else if (event.key === "Enter" && first >= 0 && words !== "") {
      const row = rows[first];
      if (row?.kind === "session") location.hash = `#/s/${row.session.id}`;
    } else if (event.key === "Escape" && words !== "") setWords("");
    else return;
    event.preventDefault();
  }

  return (
    <section aria-label={t("nav.sessions")} className="flex min-h-24 flex-1 flex-col border-t border-line">
      <div className="flex shrink-0 items-center gap-1 px-2.5 py-1.5">
        <div className="relative min-w-0 flex-1">
          <input
            ref={search}
            type="search"
            data-session-search
            aria-label={t("list.search")}
            placeholder={t("list.search")}
            value={words}
            onChange={(event) => setWords(event.target.value)}
            onKeyDown={onSearchKey}
            className="h-7.5 w-full rounded-lg bg-transparent px-2.5 text-sm outline-none placeholder:text-ink-3 hover:bg-hover focus-visible:bg-hover pointer-coarse:h-10 [&::-webkit-search-cancel-button]:hidden"
          />
          {words !== "" && (
            <button
              type="button"
              aria-label={t("list.clear")}
              onClick={() => {
                setWords("");
                search.current?.focus();
              }}
              className="absolute top-1/2 right-1 flex size-5 -translate-y-1/2 items-center justify-center rounded text-ink-3 hover:text-ink"
            >
              <X className="size-3.5" aria-hidden />
            </button>
          )}
        </div>
        <Dropdown
          label={t("list.menu")}
          trigger={<ListFilter className="size-4" />}
          triggerClassName={cn(iconButtonClass, filter !== "all" && "bg-accent-soft text-accent")}
        >
          <DropdownChoice<SessionFilter>
            label={t("list.filter.label")}
            value={filter}
            onChange={setFilter}
            options={sessionFilters.map((value) => ({ value, label: t(`list.filter.${value}`) }))}
          />
          <DropdownSeparator />
          <DropdownChoice<Sorting>
            label={t("list.sort.label")}
            value={sorting}
            onChange={(next) => sortBy(next) || tellOffline()}
            options={(["activity", "own"] as const).map((value) => ({
              value,
              label: t(`list.sort.${value}`),
            }))}
          />
          <DropdownSeparator />
          <DropdownItem icon={<FolderPlus />} onSelect={() => setMaking(true)}>
            {t("sessionGroup.new")}
          </DropdownItem>
        </Dropdown>
        <GroupDialog open={making} onClose={() => setMaking(false)} />
      </div>
      <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto px-2.5">
        {!listed && <ListSkeleton />}
        {listed && rows.length === 0 && (
          <p className="px-2.5 py-1 text-sm text-ink-3">
            {cursor !== undefined ? t("list.searching") : any ? t("list.nothing") : t("nav.empty")}
          </p>
        )}
        {/* The rows take the focus; the list only hears their keys. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
        <ul className="relative" style={{ height: virtualizer.getTotalSize() }} onKeyDown={keys.onKeyDown}>
          {virtualizer.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            const side = drag.mark?.key === row.key ? drag.mark.side : undefined;
            const place = { top: item.start, height: item.size, marks: keys.marksOf(row) };
            switch (row.kind) {
              case "header":
                return (
                  <SectionHeader
                    key={item.key}
                    {...place}
                    section={row.section}
                    open={row.open}
                    target={side !== undefined}
                    onToggle={() => toggle(row)}
                    drag={drag.of(row)}
                  />
                );
              case "session":
                return (
                  <SessionEntry
                    key={item.key}
                    {...place}
                    session={row.session}
                    kind={row.section.kind}
                    current={shown === row.session.id}
                    drop={side}
                    drag={drag.of(row)}
                    onOpen={closeNarrow}
                  />
                );
              case "more":
                return (
                  <li
                    key={item.key}
                    className="absolute inset-x-0 top-0"
                    style={{ transform: `translateY(${item.start}px)`, height: item.size }}
                  >
                    <button
                      type="button"
                      {...place.marks}
                      onClick={() => {
                        // The first of those that come into sight goes on where the button was.
                        keys.focusAt(item.index - 1);
                        toggle(row);
                      }}
                      className="h-full w-full rounded-lg pl-8.5 text-left text-xs text-ink-3 -outline-offset-2 hover:bg-hover hover:text-ink"
                    >
                      {t("list.more", { count: row.hidden })}
                    </button>
                  </li>
                );
            }
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
