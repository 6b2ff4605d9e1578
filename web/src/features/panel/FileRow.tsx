import { useState } from "react";
import { useTranslation } from "react-i18next";
import { baseName, relativePath } from "../../lib/format";
import type { ChangedFile } from "../../session/summary";
import { Diff } from "../../tools/Diff";
import { CopyButton } from "../../ui/CopyButton";
import { Modal } from "../../ui/Modal";

/** A file that was changed; a click shows every change, in order. */
export function FileRow({ file, cwd }: { file: ChangedFile; cwd: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const shown = relativePath(file.path, cwd);
  return (
    <li>
      <button
        type="button"
        onClick={() => setOpen(true)}
        title={file.path}
        className="flex w-full items-center gap-2 rounded-md px-2 py-1 text-left text-sm hover:bg-hover pointer-coarse:py-2"
      >
        <span className="min-w-0 flex-1 truncate font-mono text-xs" dir="rtl">
          <bdi>{shown}</bdi>
        </span>
        <span className="shrink-0 font-mono text-2xs text-good">
          {t("diff.added", { count: file.added })}
        </span>
        <span className="shrink-0 font-mono text-2xs text-bad">
          {t("diff.removed", { count: file.removed })}
        </span>
      </button>
      <Modal open={open} onClose={() => setOpen(false)} title={baseName(file.path)} wide>
        <p className="mb-3 flex items-center gap-1 font-mono text-xs text-ink-2">
          <span className="min-w-0 break-all">{file.path}</span>
          <CopyButton text={file.path} className="size-6" />
        </p>
        <div className="flex flex-col gap-3">
          {file.edits.map((edit) => (
            <div key={edit.key} className="overflow-hidden rounded-lg border border-line">
              <Diff id={`panel:${edit.key}`} input={edit.input} details={edit.details} />
            </div>
          ))}
        </div>
      </Modal>
    </li>
  );
}
