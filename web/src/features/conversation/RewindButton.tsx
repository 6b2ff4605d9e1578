import { Undo2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { relativePath } from "../../lib/format";
import { useSession } from "../../store/hooks";
import { type Rewound, rewind } from "../../store/inquiries";
import { Button } from "../../ui/Button";
import { IconButton } from "../../ui/IconButton";
import { Modal } from "../../ui/Modal";
import { toasts } from "../../ui/toasts";

type Stage =
  | { readonly at: "asking" }
  | { readonly at: "known"; readonly result: Rewound }
  | { readonly at: "failed" };

/** Puts the files back to what they were before a prompt. What that would change is shown first. */
export function RewindButton({ sessionId, userMessageId }: { sessionId: string; userMessageId: string }) {
  const { t } = useTranslation();
  const [stage, setStage] = useState<Stage>();
  const session = useSession(sessionId);

  function look(): void {
    setStage({ at: "asking" });
    rewind(sessionId, userMessageId, true).then(
      (result) => setStage({ at: "known", result }),
      () => setStage({ at: "failed" }),
    );
  }

  function restore(files: number): void {
    setStage(undefined);
    rewind(sessionId, userMessageId, false).then(
      (result) =>
        toasts.add(
          result.canRewind
            ? { title: t("rewind.done", { count: files }) }
            : { title: t("rewind.impossible"), description: result.error, type: "error" },
        ),
      () => toasts.add({ title: t("rewind.impossible"), type: "error" }),
    );
  }

  if (session?.status === "running") return null;
  return (
    <>
      <IconButton
        label={t("rewind.label")}
        onClick={look}
        className="absolute top-3.5 right-9 opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 focus-visible:opacity-100 sm:right-1"
      >
        <Undo2 className="size-3.5" />
      </IconButton>
      <Modal open={stage !== undefined} onClose={() => setStage(undefined)} title={t("rewind.title")}>
        {stage?.at === "asking" && <p className="text-sm text-ink-3">{t("common.loading")}</p>}
        {stage?.at === "failed" && <p className="text-sm text-ink-2">{t("rewind.noAgent")}</p>}
        {stage?.at === "known" && (
          <Preview
            result={stage.result}
            cwd={session?.cwd}
            onRestore={() => restore(stage.result.filesChanged.length)}
            onCancel={() => setStage(undefined)}
          />
        )}
      </Modal>
    </>
  );
}

interface PreviewProps {
  result: Rewound;
  cwd: string | undefined;
  onRestore: () => void;
  onCancel: () => void;
}

function Preview({ result, cwd, onRestore, onCancel }: PreviewProps) {
  const { t } = useTranslation();
  if (!result.canRewind || result.filesChanged.length === 0) {
    return (
      <p className="text-sm text-ink-2">
        {result.canRewind ? t("rewind.nothing") : (result.error ?? t("rewind.impossible"))}
      </p>
    );
  }
  return (
    <>
      <p className="text-sm text-ink-2">{t("rewind.text")}</p>
      <ul className="mt-3 max-h-60 overflow-y-auto rounded-lg border border-line px-3 py-2 font-mono text-xs">
        {result.filesChanged.map((path) => (
          <li key={path} title={path} className="py-0.5 break-all">
            {relativePath(path, cwd)}
          </li>
        ))}
      </ul>
      <p className="mt-2 font-mono text-xs">
        <span className="text-good">{t("diff.added", { count: result.insertions })}</span>{" "}
        <span className="text-bad">{t("diff.removed", { count: result.deletions })}</span>
      </p>
      <div className="flex justify-end gap-2 pt-4">
        <Button onClick={onCancel}>{t("common.cancel")}</Button>
        <Button variant="danger" onClick={onRestore}>
          {t("rewind.restore")}
        </Button>
      </div>
    </>
  );
}
