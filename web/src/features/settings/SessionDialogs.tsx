import { useState } from "react";
import { useTranslation } from "react-i18next";
import { closeDialog, type SessionDialog, useDialogs } from "../../store/dialogs";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Modal } from "../../ui/Modal";
import { HooksDialog } from "../hooks/HooksDialog";
import { GroupDialog } from "./GroupDialog";
import { RenameDialog } from "./RenameDialog";
import { removeSession } from "./sessionActions";
import { TagsDialog } from "./TagsDialog";
import { TerminalDialog } from "./TerminalDialog";

/** The dialogs about a session. They stand once in the page, whoever opens them. */
export function SessionDialogs() {
  const { t } = useTranslation();
  const open = useDialogs((state) => state.open);
  // What is closing still shows the session that it was about.
  const [shown, setShown] = useState(open);
  if (open && open !== shown) setShown(open);
  const session = useApp((state) => (shown ? state.sessions.get(shown.sessionId) : undefined));
  if (!session) return null;
  const props = (dialog: SessionDialog) => ({ session, open: open?.dialog === dialog, onClose: closeDialog });
  return (
    <>
      <RenameDialog {...props("rename")} />
      <TagsDialog {...props("tags")} />
      <GroupDialog session={session.id} open={open?.dialog === "group"} onClose={closeDialog} />
      <HooksDialog {...props("hooks")} />
      <TerminalDialog {...props("terminal")} />
      <Modal
        open={open?.dialog === "delete"}
        onClose={closeDialog}
        title={t("session.deleteRunning.title")}
        description={t("session.deleteRunning.text")}
      >
        <div className="flex justify-end gap-2 pt-1">
          <Button onClick={closeDialog}>{t("common.cancel")}</Button>
          <Button
            variant="danger"
            onClick={() => {
              closeDialog();
              removeSession(session);
            }}
          >
            {t("session.deleteRunning.confirm")}
          </Button>
        </div>
      </Modal>
    </>
  );
}
