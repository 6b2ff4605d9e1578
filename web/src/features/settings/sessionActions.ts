/** What menus and the palette do with a session as a whole. */
import i18next from "i18next";
import type { SessionInfo } from "../../gen/events";
import { copyText } from "../../lib/clipboard";
import { deleteSession, UNDO_MS, undoDeletion } from "../../store/controller";
import { openDialog } from "../../store/dialogs";
import { toasts } from "../../ui/toasts";

/** Who deletes a session that runs is asked first. */
export function askToRemove(session: SessionInfo): void {
  if (session.status === "running") openDialog("delete", session.id);
  else removeSession(session);
}

export function removeSession(session: SessionInfo): void {
  deleteSession(session.id);
  const toast = toasts.add({
    title: i18next.t("session.deleted", { title: session.title }),
    timeout: UNDO_MS,
    actionProps: {
      children: i18next.t("common.undo"),
      onClick() {
        undoDeletion(session.id);
        toasts.close(toast);
      },
    },
  });
}

export function copySessionId(session: SessionInfo): void {
  copyText(session.id).then(
    () => toasts.add({ title: i18next.t("session.idCopied") }),
    () => toasts.add({ title: i18next.t("common.copyFailed"), type: "error" }),
  );
}
