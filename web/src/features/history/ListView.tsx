import { Search, X } from "lucide-react";
import { useCallback, useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Facets, HistoryProjects, SearchResult, Session } from "../../gen/history";
import { useNow } from "../../lib/useNow";
import { cn } from "../../lib/cn";
import { formatAge, formatCount } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { Empty, Fetched } from "../../ui/Page";
import { go } from "../../store/route";
import { type Filters, serverFilters, viewAddress, viewHref } from "./address";
import { getProjects, getSessions, search } from "../../wire/history";
import { FilterBar } from "./FilterBar";
import { Header } from "./Header";
import { HitRow } from "./HitRow";
import { useHistoryChanges } from "./live";
import { Rows } from "./Rows";
import { SessionRow } from "./SessionRow";
import { usePaged } from "./usePaged";
import { useTyped } from "./useTyped";
import { VaultLine } from "./VaultLine";

const SESSIONS_AT_ONCE = 200;
const HITS_AT_ONCE = 50;
/** While something goes on elsewhere, whether it still does. */
const LOOK_AGAIN_MS = 5_000;
/** How often what was found is looked for again while conversations are still being read. */
const READING_MS = 2_000;
/** Between the last letter and the search. */
const TYPING_MS = 180;

const show = (filters: Filters) =>
  go({ view: "page", page: "history", rest: viewAddress({ view: "list", filters }) }, "replace");

/** Projects, and their conversations or what was found in them. */
export function ListView({ filters }: { filters: Filters }) {
  const { t } = useTranslation();
  const [projects, reloadProjects] = useLoaded("projects", getProjects);
  const [facets, setFacets] = useState<Facets>({ tools: [], models: [] });
  const change = useCallback((part: Filters) => show({ ...filters, ...part }), [filters]);
  useHistoryChanges(reloadProjects);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Header current="list">
        <SearchField value={filters.q ?? ""} onChange={(q) => change({ q: q || undefined })} />
      </Header>
      <div className="flex min-h-0 flex-1 border-t border-line">
        <aside
          aria-label={t("history.projects")}
          className="hidden w-60 shrink-0 overflow-y-auto border-r border-line px-2.5 py-3 lg:block"
        >
          <Fetched loaded={projects} onRetry={reloadProjects}>
            {(value) => <Projects list={value} filters={filters} />}
          </Fetched>
        </aside>
        <div className="flex min-w-0 flex-1 flex-col">
          <FilterBar
            filters={filters}
            facets={facets}
            projects={projects.state === "ready" ? projects.value.projects : []}
            onChange={change}
          />
          {filters.q ? <Hits filters={filters} /> : <Sessions filters={filters} onFacets={setFacets} />}
          <VaultLine retentionDays={projects.state === "ready" ? projects.value.retention_days : undefined} />
        </div>
      </div>
    </div>
  );
}

function SearchField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useTyped(value, onChange, TYPING_MS);
  const field = useRef<HTMLInputElement>(null);
  return (
    <div className="relative min-w-0 basis-full sm:basis-80">
      <Search
        className="pointer-events-none absolute top-1/2 left-3 size-4 -translate-y-1/2 text-ink-3"
        aria-hidden
      />
      <input
        ref={field}
        type="search"
        aria-label={t("history.search.label")}
        placeholder={t("history.search.label")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || text === "") return;
          event.stopPropagation();
          setText("");
        }}
        className="h-9 w-full rounded-lg border border-line-strong bg-raised pr-9 pl-9 text-sm shadow-card outline-none focus-visible:border-accent pointer-coarse:h-11 [&::-webkit-search-cancel-button]:hidden"
      />
      {text !== "" && (
        <button
          type="button"
          aria-label={t("history.search.clear")}
          onClick={() => {
            setText("");
            field.current?.focus();
          }}
          className="absolute top-1/2 right-2 flex size-6 -translate-y-1/2 items-center justify-center rounded text-ink-3 hover:text-ink pointer-coarse:size-9"
        >
          <X className="size-4" aria-hidden />
        </button>
      )}
    </div>
  );
}

function Projects({ list, filters }: { list: HistoryProjects; filters: Filters }) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  const count = list.projects.reduce((total, project) => total + project.session_count, 0);
  const entry = (id: string | undefined, name: string, sessions: number, title?: string, active?: string) => (
    <li key={id ?? ""}>
      <a
        href={viewHref({ view: "list", filters: { ...filters, project: id } })}
        title={title}
        aria-current={filters.project === id ? "true" : undefined}
        className={cn(
          "flex items-baseline gap-2 rounded-lg px-2.5 py-1.5 text-sm transition-colors hover:bg-hover",
          filters.project === id ? "bg-active font-medium text-ink" : "text-ink-2",
        )}
      >
        <span className="min-w-0 flex-1 truncate">{name}</span>
        {active && (
          <span className="text-2xs text-ink-3">{formatAge(Date.parse(active), now, i18n.language)}</span>
        )}
        <span className="text-xs text-ink-3 tabular-nums">{formatCount(sessions, i18n.language)}</span>
      </a>
    </li>
  );
  return (
    <ul className="flex flex-col gap-px">
      {entry(undefined, t("history.allProjects"), count)}
      {list.projects.map((project) =>
        entry(project.id, project.name, project.session_count, project.path, project.last_active),
      )}
    </ul>
  );
}

function Sessions({ filters, onFacets }: { filters: Filters; onFacets: (facets: Facets) => void }) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  // Rounded to an hour: a list is not asked for anew because time goes by.
  const hour = Math.floor(now / 3_600_000) * 3_600_000;
  const values = useMemo(() => serverFilters(filters, hour), [filters, hour]);
  const { paged, more, reload } = usePaged<Session>(
    JSON.stringify(values),
    async (offset, limit) => {
      const page = await getSessions({ ...values, offset, limit });
      onFacets(page.facets);
      return { items: page.sessions, total: page.total };
    },
    SESSIONS_AT_ONCE,
  );
  useHistoryChanges(reload);
  const anyLive = paged.items.some((session) => session.live);
  const lookAgain = useEffectEvent(reload);
  // A program that ends writes nothing, so nobody tells of it.
  useEffect(() => {
    if (!anyLive) return;
    const timer = setInterval(lookAgain, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [anyLive]);
  const narrowed = Object.keys(filters).length > 0;
  return (
    <Rows
      label={t("history.conversations")}
      paged={paged}
      onMore={more}
      onRetry={reload}
      rowHeight={64}
      keyOf={(session) => session.id}
      summary={t("history.count", { count: paged.total, shown: formatCount(paged.total, i18n.language) })}
      empty={
        narrowed ? (
          <Empty title={t("history.nothing.filtered")}>
            <a
              href={viewHref({ view: "list", filters: {} })}
              className="font-medium text-accent hover:underline"
            >
              {t("history.nothing.reset")}
            </a>
          </Empty>
        ) : (
          <Empty title={t("history.nothing.yet")}>{t("history.nothing.hint")}</Empty>
        )
      }
    >
      {(session) => <SessionRow session={session} now={now} withProject={!filters.project} />}
    </Rows>
  );
}

function Hits({ filters }: { filters: Filters }) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  const hour = Math.floor(now / 3_600_000) * 3_600_000;
  const values = useMemo(() => serverFilters(filters, hour), [filters, hour]);
  const { paged, more, reload } = usePaged<SearchResult>(
    JSON.stringify(values),
    async (offset, limit) => {
      const page = await search({ ...values, offset, limit });
      const { results: items, total, total_is_exact: exact, is_complete: whole } = page;
      return { items, total, exact, whole };
    },
    HITS_AT_ONCE,
  );
  const lookAgain = useEffectEvent(reload);
  useEffect(() => {
    if (paged.whole) return;
    const timer = setInterval(lookAgain, READING_MS);
    return () => clearInterval(timer);
  }, [paged.whole]);
  const shown = formatCount(paged.total, i18n.language);
  const count = paged.exact
    ? t("history.found.count", { count: paged.total, shown })
    : t("history.found.atLeast", { count: paged.total, shown });
  return (
    <Rows
      label={t("history.found.label")}
      paged={paged}
      onMore={more}
      onRetry={reload}
      rowHeight={92}
      keyOf={(hit) => `${hit.session_id} ${hit.uuid}`}
      summary={paged.whole ? count : `${count}. ${t("history.found.reading")}`}
      empty={
        <Empty title={t("history.found.nothing")}>
          {t(paged.whole ? "history.found.hint" : "history.found.reading")}
        </Empty>
      }
    >
      {(hit) => <HitRow hit={hit} now={now} />}
    </Rows>
  );
}
