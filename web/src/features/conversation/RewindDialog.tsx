import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { relativePath } from "../../lib/format";
import type { PromptItem } from "../../session/items";
import { useSession } from "../../store/hooks";
import type { Rewound } from "../../store/inquiries";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { goBack, preview, previewWithoutFiles, report } from "./goingBack";

interface RewindDialogProps {
  sessionId: string;
  prompt: PromptItem;
  open: boolean;
  onClose: () => void;
}

/** Takes conversation and files back to before a prompt. What that would change is shown first. */
export function RewindDialog({ open, onClose, ...rest }: RewindDialogProps) {
  const { t } = useTranslation();
  return (
    <Modal open={open} onClose={onClose} title={t("rewind.title")}>
      <Preview {...rest} onClose={onClose} />
    </Modal>
  );
}

type Stage =
  | { readonly at: "asking" }
  | { readonly at: "known"; readonly result: Rewound; readonly noFiles?: string }
  | { readonly at: "failed"; readonly reason: string };

function Preview({ sessionId, prompt, onClose }: Omit<RewindDialogProps, "open">) {
  const { t } = useTranslation();
  const [stage, setStage] = useState<Stage>({ at: "asking" });
  const [files, setFiles] = useState(true);
  const cwd = useSession(sessionId)?.cwd;

  useEffect(() => {
    let current = true;
    const show = (next: Stage) => current && setStage(next);
    preview(sessionId, prompt).then(
      (result) => show({ at: "known", result, ...(!result.canRewind && { noFiles: result.error ?? "" }) }),
      // Without its files the conversation can go back all the same.
      (noFiles: Error) =>
        previewWithoutFiles(sessionId, prompt).then(
          (result) => show({ at: "known", result, noFiles: noFiles.message }),
          (error: Error) => show({ at: "failed", reason: error.message }),
        ),
    );
    return () => {
      current = false;
    };
  }, [sessionId, prompt]);

  if (stage.at === "asking") return <p className="text-sm text-ink-3">{t("common.loading")}</p>;
  if (stage.at === "failed") {
    return (
      <p role="alert" className="text-sm text-bad">
        {stage.reason}
      </p>
    );
  }
  const { result, noFiles } = stage;
  const changed = noFiles === undefined ? result.filesChanged : [];
  return (
    <form
      className="text-sm"
      onSubmit={(event) => {
        event.preventDefault();
        onClose();
        goBack(sessionId, prompt, files && changed.length > 0).catch((error: unknown) =>
          report("rewind.impossible", error),
        );
      }}
    >
      <p className="line-clamp-3 rounded-lg bg-sunken px-3 py-2 break-words whitespace-pre-wrap">
        {prompt.text}
      </p>
      <p className="mt-3 text-ink-2">{t("rewind.conversation", { count: result.prompts ?? 1 })}</p>
      {changed.length > 0 ? (
        <>
          <label className="mt-3 flex items-center gap-2">
            <input
              type="checkbox"
              checked={files}
              onChange={(event) => setFiles(event.target.checked)}
              className="size-3.5 shrink-0 accent-accent"
            />
            {t("rewind.files", { count: changed.length })}
            <span className="ml-auto font-mono text-xs">
              <span className="text-good">{t("diff.added", { count: result.insertions })}</span>{" "}
              <span className="text-bad">{t("diff.removed", { count: result.deletions })}</span>
            </span>
          </label>
          <Paths paths={changed} cwd={cwd} />
        </>
      ) : (
        <p className="mt-3 text-ink-3">
          {noFiles ? t("rewind.noFiles", { reason: noFiles }) : t("rewind.nothing")}
        </p>
      )}
      {files && result.notSaved && result.notSaved.length > 0 && (
        <>
          <p className="mt-3 text-wait">{t("rewind.notSaved")}</p>
          <Paths paths={result.notSaved} cwd={cwd} />
        </>
      )}
      <p className="mt-3 text-xs text-ink-3">{t("rewind.undoHint")}</p>
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onClose}>{t("common.cancel")}</Button>
        <Button type="submit" variant="primary">
          {t("rewind.restore")}
        </Button>
      </div>
    </form>
  );
}

function Paths({ paths, cwd }: { paths: readonly string[]; cwd: string | undefined }) {
  return (
    <ul className="mt-2 max-h-48 overflow-y-auto rounded-lg border border-line px-3 py-2 font-mono text-xs">
      {paths.map((path) => (
        <li key={path} title={path} className="py-0.5 break-all">
          {relativePath(path, cwd)}
        </li>
      ))}
    </ul>
  );
}
