import { ChevronRight } from "lucide-react";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../../lib/cn";
import { formatCount } from "../../lib/format";
import { hasOlder } from "../../session/log";
import { type ChangedFile, emptySummary, filesOf } from "../../session/summary";
import { loadOlder, openSession } from "../../store/controller";
import { useLog, useSession } from "../../store/hooks";
import { Diff } from "../../tools/Diff";
import { Button } from "../../ui/Button";
import { CopyButton } from "../../ui/CopyButton";
import { Opening } from "../../ui/Opening";

/** With more files than this each is folded until someone wants to see it. */
const UNFOLDED = 12;

/** Everything that a session has changed, file by file, as it happens: to stand beside the session. */
export function ChangesView({ id }: { id: string }) {
  const { t, i18n } = useTranslation();
  const session = useSession(id);
  const log = useDeferredValue(useLog(id));
  const known = session !== undefined;
  useEffect(() => {
    if (known) openSession(id);
  }, [id, known]);
  const whole = log !== undefined && !hasOlder(log);
  const items = log?.transcript.items;
  const cwd = session?.cwd ?? "";
  const summary = session?.summary ?? emptySummary;
  const files = useMemo(() => filesOf(summary, items ?? [], cwd, whole), [summary, items, cwd, whole]);
  if (!session) return <Opening />;
  if (files.length === 0)
    return (
      <div className="m-auto max-w-xs px-6 text-center">
        <p className="text-sm font-medium">{t("panel.noFiles")}</p>
        <p className="mt-1 text-sm text-ink-2">{t("panes.noChanges")}</p>
      </div>
    );
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-3 pb-6">
      <p className="flex items-center gap-2 py-2.5 text-xs text-ink-3">
        {t("panes.files", { count: files.length, shown: formatCount(files.length, i18n.language) })}
      </p>
      {!whole && (
        <p className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-2">
          {t("panel.earlierChanges")}
          <Button size="sm" onClick={() => loadOlder(session.id)}>
            {t("panel.loadEarlier")}
          </Button>
        </p>
      )}
      <ul className="flex flex-col gap-3">
        {files.map((file) => (
          <FileChanges key={file.path} file={file} folded={files.length > UNFOLDED} />
        ))}
      </ul>
    </div>
  );
}

function FileChanges({ file: { path, edits, changes }, folded }: { file: ChangedFile; folded: boolean }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(!folded);
  return (
    <li className="overflow-hidden rounded-xl border border-line bg-raised">
      <h3 className="flex h-9 items-center gap-1 pr-1.5">
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex h-full min-w-0 flex-1 items-center gap-1.5 pl-2 text-left -outline-offset-2 hover:bg-hover"
        >
          <ChevronRight
            className={cn("size-3.5 shrink-0 text-ink-3 transition-transform", open && "rotate-90")}
            aria-hidden
          />
          <span className="min-w-0 truncate font-mono text-xs" dir="rtl" title={path}>
            <bdi>{path}</bdi>
          </span>
          {changes && (
            <>
              <span className="shrink-0 font-mono text-2xs text-good">
                {t("diff.added", { count: changes.added })}
              </span>
              <span className="shrink-0 font-mono text-2xs text-bad">
                {t("diff.removed", { count: changes.removed })}
              </span>
            </>
          )}
        </button>
        <CopyButton text={path} className="size-6" />
      </h3>
      {open &&
        (edits.length > 0 ? (
          edits.map((edit) => (
            <div key={edit.key} className="border-t border-line">
              <Diff id={`changes:${edit.key}`} input={edit.input} details={edit.details} />
            </div>
          ))
        ) : (
          <p className="border-t border-line px-3 py-2 text-xs text-ink-3">{t("panes.notLoaded")}</p>
        ))}
    </li>
  );
}
