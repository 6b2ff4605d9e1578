import { Undo2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useSession } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { undo } from "./goingBack";

/** Stands where the conversation went back to. Until something is said, that can be undone. */
export function Rewound({
  sessionId,
  prompts,
  newest,
}: {
  sessionId: string;
  prompts: number;
  newest: boolean;
}) {
  const { t } = useTranslation();
  const undoable = useSession(sessionId)?.canUndoRewind === true && newest;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border border-dashed border-line px-3 py-1.5 text-xs text-ink-3">
      <Undo2 className="size-3.5 shrink-0" aria-hidden />
      <span className="min-w-0 flex-1">{t("rewind.row", { count: prompts })}</span>
      {undoable && (
        <Button size="sm" onClick={() => void undo(sessionId)}>
          {t("rewind.undo")}
        </Button>
      )}
    </div>
  );
}
