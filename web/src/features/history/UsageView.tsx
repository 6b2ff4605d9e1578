import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useNow } from "../../lib/useNow";
import type { Session, UsageReport, UsageRow } from "../../gen/history";
import { cn } from "../../lib/cn";
import { baseName, formatCost, formatCount } from "../../lib/format";
import { useLoaded } from "../../lib/useLoaded";
import { LimitBars } from "../../ui/Limits";
import { Empty, Fetched } from "../../ui/Page";
import { go } from "../../store/route";
import { Choice } from "../../ui/Choice";
import { serverFilters, viewAddress, viewHref } from "./address";
import { getProjects, getSessions, getUsage } from "../../wire/history";
import { ranges } from "./FilterBar";
import { localDay } from "./chart";
import { Header } from "./Header";
import { useHistoryChanges } from "./live";
import { UsageChart } from "./UsageChart";

const tables = ["days", "projects", "models", "sessions"] as const;
type Table = (typeof tables)[number];
const ALL = "all";
/** Rows of a table; the rest is summed up in the last one. */
const MOST = 100;

/** What conversations cost, by day, project, model and conversation. */
export function UsageView({ days, by }: { days?: string; by?: string }) {
  const { t } = useTranslation();
  const range = days ?? "30";
  const table = tables.find((each) => each === by) ?? "days";
  const now = useNow();
  const hour = Math.floor(now / 3_600_000) * 3_600_000;
  const values = serverFilters({ days: range === ALL ? undefined : range }, hour);
  const [usage, reload] = useLoaded(`usage ${JSON.stringify(values)}`, () => getUsage(values));
  useHistoryChanges(reload);
  const show = (part: { days?: string; by?: string }) =>
    go({ view: "page", page: "history", rest: viewAddress({ view: "usage", days, by, ...part }) }, "replace");
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Header current="usage">
        <Choice
          label={t("history.usage.range")}
          value={range}
          options={[
            ...ranges.slice(1).map((each) => ({
              value: each as string,
              label: t("history.filter.lastDays", { count: Number(each) }),
            })),
            { value: ALL, label: t("history.filter.anyTime") },
          ]}
          onChange={(value) => show({ days: value })}
          className="border border-line pointer-coarse:h-10"
        />
      </Header>
      <div className="min-h-0 flex-1 overflow-y-auto border-t border-line" tabIndex={-1}>
        <div className="mx-auto w-full max-w-4xl px-4 pt-6 pb-16 sm:px-6">
          <LimitBars />
          <Fetched loaded={usage} onRetry={reload}>
            {(report) =>
              report.total.messages === 0 ? (
                <Empty title={t("history.usage.nothing")} />
              ) : (
                <Report
                  report={report}
                  period={range === ALL ? undefined : Number(range)}
                  today={localDay(hour)}
                  table={table}
                  onTable={(next) => show({ by: next })}
                />
              )
            }
          </Fetched>
        </div>
      </div>
    </div>
  );
}

function Report({
  report,
  period,
  today,
  table,
  onTable,
}: {
  report: UsageReport;
  /** Days; none is everything. */
  period: number | undefined;
  today: string;
  table: Table;
  onTable: (table: Table) => void;
}) {
  const { t, i18n } = useTranslation();
  const { total } = report;
  // As in the table, what came from the cache stands apart: it is most of all, and costs least.
  const input = total.input_tokens + total.cache_creation_input_tokens;
  const cached = formatCount(total.cache_read_input_tokens, i18n.language);
  const figures = [
    { name: "cost" as const, value: formatCost(total.cost_usd, i18n.language) },
    {
      name: "input" as const,
      value: formatCount(input, i18n.language),
      more: t("history.usage.andCached", { shown: cached }),
    },
    { name: "output" as const, value: formatCount(total.output_tokens, i18n.language) },
    { name: "messages" as const, value: formatCount(total.messages, i18n.language) },
  ] satisfies { name: string; value: string; more?: string }[];
  return (
    <>
      <dl className="grid grid-cols-2 gap-2.5 sm:grid-cols-4">
        {figures.map(({ name, value, more }) => (
          <div key={name} className="rounded-xl border border-line bg-raised px-4 py-3 shadow-card">
            <dt className="text-xs text-ink-3">{t(`history.usage.${name}`)}</dt>
            <dd className="mt-0.5 flex flex-wrap items-baseline gap-x-2 tabular-nums">
              <span className="text-xl font-semibold tracking-tight">{value}</span>
              {more && <span className="text-xs text-ink-3">{more}</span>}
            </dd>
          </div>
        ))}
      </dl>
      <UsageChart days={report.days} period={period} today={today} />
      {report.models_without_price.length > 0 && (
        <p className="mt-4 rounded-lg bg-wait-soft px-3 py-2 text-xs text-wait">
          {t("history.usage.unpriced", { models: report.models_without_price.join(", ") })}
        </p>
      )}
      <div
        role="tablist"
        aria-label={t("history.usage.by")}
        className="mt-6 flex w-fit gap-0.5 rounded-lg bg-active p-0.5"
      >
        {tables.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`usage-tab-${each}`}
            aria-controls="usage-table"
            aria-selected={table === each}
            onClick={() => onTable(each)}
            className={cn(
              "h-7.5 rounded-md px-3 text-sm font-medium pointer-coarse:h-10",
              table === each ? "bg-raised text-ink shadow-card" : "text-ink-2 hover:text-ink",
            )}
          >
            {t(`history.usage.of.${each}`)}
          </button>
        ))}
      </div>
      <div id="usage-table" role="tabpanel" aria-labelledby={`usage-tab-${table}`} className="mt-3">
        <UsageTable table={table} rows={table === "days" ? report.days.toReversed() : report[table]} />
      </div>
    </>
  );
}

/** The server gives a thousand at a time. */
async function allSessions(): Promise<Session[]> {
  const all: Session[] = [];
  for (;;) {
    const { sessions, total } = await getSessions({ offset: all.length, limit: 1000 });
    all.push(...sessions);
    if (sessions.length === 0 || all.length >= total) return all;
  }
}

/** Projects and conversations by the names that people know. */
function useNames(table: Table): (key: string) => { label: string; title?: string; href?: string } {
  const { i18n } = useTranslation();
  const [projects] = useLoaded("projects", getProjects);
  const [sessions] = useLoaded(table === "sessions" ? "sessions" : "", async () =>
    table === "sessions" ? allSessions() : [],
  );
  return useMemo(() => {
    const byProject = new Map(
      projects.state === "ready" ? projects.value.projects.map((each) => [each.id, each]) : [],
    );
    const bySession = new Map(
      sessions.state === "ready" ? sessions.value.map((each) => [each.id, each]) : [],
    );
    const date = new Intl.DateTimeFormat(i18n.language, { dateStyle: "medium", timeZone: "UTC" });
    return (key) => {
      switch (table) {
        case "days":
          return { label: date.format(Date.parse(key)) };
        case "projects": {
          const path = byProject.get(key)?.path;
          const filters = { project: key };
          return {
            label: path ? baseName(path) : key,
            title: path,
            href: viewHref({ view: "list", filters }),
          };
        }
        case "sessions": {
          const title = bySession.get(key)?.title;
          return { label: title || key, title: key, href: viewHref({ view: "session", id: key }) };
        }
        case "models":
          return { label: key };
      }
    };
  }, [table, projects, sessions, i18n.language]);
}

function UsageTable({ table, rows }: { table: Table; rows: readonly UsageRow[] }) {
  const { t, i18n } = useTranslation();
  const name = useNames(table);
  const language = i18n.language;
  const cell = "px-2 py-2 text-right tabular-nums sm:px-3 sm:whitespace-nowrap";
  return (
    <div
      className="overflow-x-auto rounded-xl border border-line bg-raised shadow-card"
      tabIndex={0}
      role="region"
      aria-label={t(`history.usage.of.${table}`)}
    >
      <table className="w-full text-sm">
        <thead className="border-b border-line text-xs text-ink-3">
          <tr>
            <th scope="col" className="px-2 py-2 text-left font-medium sm:px-3">
              {t(`history.usage.of.${table}`)}
            </th>
            <th scope="col" className={cn(cell, "font-medium")}>
              {t("history.usage.cost")}
            </th>
            <th scope="col" className={cn(cell, "font-medium")}>
              {t("history.usage.input")}
            </th>
            <th scope="col" className={cn(cell, "hidden font-medium sm:table-cell")}>
              {t("history.usage.cached")}
            </th>
            <th scope="col" className={cn(cell, "font-medium")}>
              {t("history.usage.output")}
            </th>
            <th scope="col" className={cn(cell, "hidden font-medium sm:table-cell")}>
              {t("history.usage.messages")}
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.slice(0, MOST).map((row) => {
            const { label, title, href } = name(row.key);
            return (
              <tr key={row.key}>
                <th
                  scope="row"
                  className="max-w-32 truncate px-2 py-2 text-left font-normal sm:max-w-80 sm:px-3"
                  title={title}
                >
                  {href ? (
                    <a href={href} className="font-medium hover:underline">
                      {label}
                    </a>
                  ) : (
                    label
                  )}
                </th>
                <td className={cn(cell, "font-medium")}>{formatCost(row.cost_usd, language)}</td>
                <td className={cell}>
                  {formatCount(row.input_tokens + row.cache_creation_input_tokens, language)}
                </td>
                <td className={cn(cell, "hidden text-ink-2 sm:table-cell")}>
                  {formatCount(row.cache_read_input_tokens, language)}
                </td>
                <td className={cell}>{formatCount(row.output_tokens, language)}</td>
                <td className={cn(cell, "hidden text-ink-2 sm:table-cell")}>
                  {formatCount(row.messages, language)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > MOST && (
        <p className="border-t border-line px-3 py-2 text-xs text-ink-3">
          {t("history.usage.more", { count: rows.length - MOST })}
        </p>
      )}
    </div>
  );
}
