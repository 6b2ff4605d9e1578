import { ChevronRight, Globe, LoaderCircle, FileText, Search } from "lucide-react";
import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { summarize } from "../../session/describe";
import { type QuietRow, summarizeQuiet } from "../../session/quiet";
import { useExpansion } from "../../ui/expansion";

interface ToolGroupProps {
  id: string;
  rows: readonly QuietRow[];
  cwd: string | undefined;
  /** Draws one of the calls. */
  children: (row: QuietRow) => ReactNode;
}

/** What was looked at, as one line; the calls themselves are one click away. */
export function ToolGroup({ id, rows, cwd, children }: ToolGroupProps) {
  const { t } = useTranslation();
  const [open, toggle] = useExpansion(id, false);
  const content = useId();
  const { read, search, web, subjects, running } = summarizeQuiet(rows, cwd);
  const Icon = running ? LoaderCircle : read > 0 ? FileText : search > 0 ? Search : Globe;
  const parts = [
    read > 0 && t("group.read", { count: read }),
    search > 0 && t("group.search", { count: search }),
    web > 0 && t("group.web", { count: web }),
  ].filter((part): part is string => Boolean(part));
  const detail = running ? summarize(running.name, running.input, cwd) : subjects.join(", ");
  return (
    <section
      aria-label={t("group.label")}
      tabIndex={-1}
      className={cn("overflow-hidden rounded-xl outline-none", open && "border border-line bg-sunken")}
    >
      <button
        type="button"
        aria-expanded={open}
        aria-controls={content}
        onClick={toggle}
        className={cn(
          "flex h-8 w-full min-w-0 items-center gap-2 rounded-lg text-left text-ink-3 -outline-offset-2 hover:text-ink pointer-coarse:h-10",
          open ? "px-3" : "px-1",
        )}
      >
        <Icon
          className={cn("size-4 shrink-0", running && "text-accent motion-safe:animate-spin")}
          aria-hidden
        />
        <span className="shrink-0 text-sm text-ink-2">{parts.join(" · ")}</span>
        <span className="min-w-0 truncate font-mono text-xs">{!open && detail}</span>
        <ChevronRight
          aria-hidden
          className={cn("size-3.5 shrink-0 transition-transform", open && "rotate-90")}
        />
      </button>
      {open && (
        <div id={content} className="flex flex-col gap-2 border-t border-line p-2.5">
          {rows.map((row) => (
            <div key={row.key}>{children(row)}</div>
          ))}
        </div>
      )}
    </section>
  );
}
