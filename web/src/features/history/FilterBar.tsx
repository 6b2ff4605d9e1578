import { FileSearch, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Facets, Project } from "../../gen/history";
import { cn } from "../../lib/cn";
import { Choice } from "../../ui/Choice";
import type { Filters } from "./address";
import { useTyped } from "./useTyped";

const ANY = "*";
const TYPING_MS = 300;
export const ranges = ["1", "7", "30", "90"] as const;

interface FilterBarProps {
  filters: Filters;
  facets: Facets;
  projects: readonly Project[];
  onChange: (part: Filters) => void;
}

const chosen = (value: string | undefined) =>
  cn("max-w-48 border border-line pointer-coarse:h-10", value && "border-accent bg-accent-soft text-accent");

/** What the list is narrowed down to. */
export function FilterBar({ filters, facets, projects, onChange }: FilterBarProps) {
  const { t } = useTranslation();
  const options = (any: string, values: readonly string[], given: string | undefined) => [
    { value: ANY, label: any },
    // One that came with the address, and may not be among those that are there.
    ...[...new Set([...values, ...(given ? [given] : [])])].map((value) => ({ value, label: value })),
  ];
  const pick = (name: keyof Filters) => (value: string) =>
    onChange({ [name]: value === ANY ? undefined : value });
  const narrowed = Object.entries(filters).some(([name, value]) => name !== "q" && value);
  return (
    <div
      role="group"
      aria-label={t("history.filter.label")}
      className="flex shrink-0 flex-wrap items-center gap-1.5 px-4 py-2.5 sm:px-6"
    >
      <span className="min-w-0 lg:hidden">
        <Choice
          label={t("history.filter.project")}
          value={filters.project ?? ANY}
          options={[
            { value: ANY, label: t("history.allProjects") },
            ...projects.map(({ id, name, path }) => ({ value: id as string, label: name, hint: path })),
          ]}
          onChange={pick("project")}
          className={chosen(filters.project)}
        />
      </span>
      <Choice
        label={t("history.filter.days")}
        value={filters.days ?? ANY}
        options={[
          { value: ANY as string, label: t("history.filter.anyTime") },
          ...ranges.map((days) => ({
            value: days as string,
            label: t("history.filter.lastDays", { count: Number(days) }),
          })),
        ]}
        onChange={pick("days")}
        className={chosen(filters.days)}
      />
      <Choice
        label={t("history.filter.tool")}
        value={filters.tool ?? ANY}
        options={options(t("history.filter.anyTool"), facets.tools, filters.tool)}
        onChange={pick("tool")}
        className={chosen(filters.tool)}
      />
      <Choice
        label={t("history.filter.model")}
        value={filters.model ?? ANY}
        options={options(t("history.filter.anyModel"), facets.models, filters.model)}
        onChange={pick("model")}
        className={chosen(filters.model)}
      />
      <FileField value={filters.file ?? ""} onChange={(file) => onChange({ file: file || undefined })} />
      {narrowed && (
        <button
          type="button"
          onClick={() =>
            onChange({
              project: undefined,
              tool: undefined,
              file: undefined,
              model: undefined,
              days: undefined,
            })
          }
          className="inline-flex h-8 items-center gap-1 rounded-lg px-2 text-sm text-ink-2 hover:bg-hover hover:text-ink pointer-coarse:h-10"
        >
          <X className="size-3.5" aria-hidden />
          {t("history.filter.reset")}
        </button>
      )}
    </div>
  );
}

function FileField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useTyped(value, onChange, TYPING_MS);
  return (
    <span className="relative">
      <FileSearch
        className="pointer-events-none absolute top-1/2 left-2.5 size-3.5 -translate-y-1/2 text-ink-3"
        aria-hidden
      />
      <input
        type="text"
        aria-label={t("history.filter.file")}
        placeholder={t("history.filter.file")}
        value={text}
        onChange={(event) => setText(event.target.value)}
        className={cn(
          "h-8 w-40 rounded-lg border border-line bg-transparent pr-2 pl-8 text-sm outline-none hover:bg-hover focus-visible:border-accent pointer-coarse:h-10",
          value && "border-accent bg-accent-soft",
        )}
      />
    </span>
  );
}
