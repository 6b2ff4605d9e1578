/** What menus and the palette do with a session as a whole. */
import i18next from "i18next";
import type { SessionInfo } from "../../gen/events";
import { copyText } from "../../lib/clipboard";
import { archiveSession, deleteSession, UNDO_MS, undoDeletion } from "../../store/controller";
import { openDialog } from "../../store/dialogs";
import { toasts } from "../../ui/toasts";

/** Who deletes a session that runs is asked first. */
export function askToRemove(session: SessionInfo): void {
  if (session.status === "running") openDialog("delete", session.id);
  else removeSession(session);
}

export function removeSession(session: SessionInfo): void {
  deleteSession(session.id);
  offerUndo(i18next.t("session.deleted", { title: session.title }), () => undoDeletion(session.id));
}

/** Archives a session, which leaves the list at once, or brings it back. */
export function toggleArchived(session: SessionInfo): void {
  archiveSession(session.id, !session.archived);
  if (!session.archived)
    offerUndo(i18next.t("session.archived", { title: session.title }), () =>
      archiveSession(session.id, false),
    );
}

function offerUndo(title: string, undo: () => void): void {
  const toast = toasts.add({
    title,
    timeout: UNDO_MS,
    actionProps: {
      children: i18next.t("common.undo"),
      onClick() {
        undo();
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
