import { FileCode, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { baseName } from "../../lib/format";
import type { UiContext } from "../../gen/events";

/** What goes along with the prompt as context. */
export function ContextChip({ context, onRemove }: { context: UiContext; onRemove: () => void }) {
  const { t } = useTranslation();
  const file = context.selectedFile;
  if (!file) return null;
  const lines = file.startLine === file.endLine ? `${file.startLine}` : `${file.startLine}–${file.endLine}`;
  return (
    <div className="flex px-3.5 pt-3">
      <span
        title={file.path}
        className="flex max-w-full items-center gap-1.5 rounded-lg border border-line bg-sunken py-0.5 pr-1 pl-2 text-xs"
      >
        <FileCode className="size-3.5 shrink-0 text-ink-3" aria-hidden />
        <span className="truncate font-mono">{baseName(file.path)}</span>
        <span className="shrink-0 text-ink-3 tabular-nums">{lines}</span>
        <button
          type="button"
          aria-label={t("composer.removeContext")}
          onClick={onRemove}
          className="flex size-5 items-center justify-center rounded text-ink-3 hover:text-ink"
        >
          <X className="size-3" aria-hidden />
        </button>
      </span>
    </div>
  );
}
