import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { baseName } from "../../lib/format";
import type { ChangedFile } from "../../session/summary";
import { loadOlder } from "../../store/controller";
import { Diff } from "../../tools/Diff";
import { Button } from "../../ui/Button";
import { CopyButton } from "../../ui/CopyButton";
import { Modal } from "../../ui/Modal";

interface FileRowProps {
  session: SessionInfo;
  file: ChangedFile;
  /** All of the session is loaded. */
  whole: boolean;
}

/** A file that was changed; a click shows the changes, in order. */
export function FileRow({ session, file, whole }: FileRowProps) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const { path, changes, edits } = file;
  return (
    <li>
      <button
        type="button"
        onClick={() => setOpen(true)}
        title={path}
        className="flex w-full items-center gap-2 rounded-md px-2 py-1 text-left text-sm hover:bg-hover pointer-coarse:py-2"
      >
        <span className="min-w-0 flex-1 truncate font-mono text-xs" dir="rtl">
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
      <Modal open={open} onClose={() => setOpen(false)} title={baseName(path)} wide>
        <p className="mb-3 flex items-center gap-1 font-mono text-xs text-ink-2">
          <span className="min-w-0 break-all">{path}</span>
          <CopyButton text={path} className="size-6" />
        </p>
        {!whole && (
          <p className="mb-3 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-ink-2">
            {t("panel.earlierChanges")}
            <Button size="sm" onClick={() => loadOlder(session.id)}>
              {t("panel.loadEarlier")}
            </Button>
          </p>
        )}
        <div className="flex flex-col gap-3">
          {edits.map((edit) => (
            <div key={edit.key} className="overflow-hidden rounded-lg border border-line">
              <Diff id={`panel:${edit.key}`} input={edit.input} details={edit.details} />
            </div>
          ))}
        </div>
      </Modal>
    </li>
  );
}
