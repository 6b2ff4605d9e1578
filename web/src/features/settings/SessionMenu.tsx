import {
  Anchor,
  Archive,
  ArchiveRestore,
  Copy,
  Ellipsis,
  GitFork,
  Pencil,
  Square,
  SquareTerminal,
  Trash2,
} from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { copyText } from "../../lib/clipboard";
import { cn } from "../../lib/cn";
import {
  archiveSession,
  deleteSession,
  forkSession,
  stopSession,
  UNDO_MS,
  undoDeletion,
} from "../../store/controller";
import { useApp } from "../../store/hooks";
import { Button } from "../../ui/Button";
import { Dropdown, DropdownItem, DropdownSeparator } from "../../ui/Dropdown";
import { iconButtonClass } from "../../ui/IconButton";
import { Modal } from "../../ui/Modal";
import { toasts } from "../../ui/toasts";
import { HooksDialog } from "../hooks/HooksDialog";
import { RenameDialog } from "./RenameDialog";
import { TerminalDialog } from "./TerminalDialog";

/** What can be done with a session as a whole. `always`: the button shows also without the pointer over its row. */
export function SessionMenu({ session, always = false }: { session: SessionInfo; always?: boolean }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<"terminal" | "delete" | "rename" | "hooks" | undefined>();
  const close = () => setOpen(undefined);
  const { archived, damaged } = session;
  // The demo agent's conversations are not known to Claude Code.
  const demo = useApp((state) => state.system?.backend.name === "demo");

  function remove(): void {
    close();
    deleteSession(session.id);
    const toast = toasts.add({
      title: t("session.deleted", { title: session.title }),
      timeout: UNDO_MS,
      actionProps: {
        children: t("common.undo"),
        onClick() {
          undoDeletion(session.id);
          toasts.close(toast);
        },
      },
    });
  }

  function copyId(): void {
    copyText(session.id).then(
      () => toasts.add({ title: t("session.idCopied") }),
      () => toasts.add({ title: t("common.copyFailed"), type: "error" }),
    );
  }

  return (
    <>
      <Dropdown
        label={t("session.menu", { title: session.title })}
        trigger={<Ellipsis className="size-4" />}
        triggerClassName={cn(
          iconButtonClass,
          !always &&
            "absolute top-1/2 right-1.5 -translate-y-1/2 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 data-[popup-open]:opacity-100 pointer-coarse:opacity-100",
        )}
      >
        {!demo && !damaged && (
          <DropdownItem
            icon={<SquareTerminal />}
            disabled={!session.claudeSessionId}
            onSelect={() => setOpen("terminal")}
          >
            {t("session.terminal")}
          </DropdownItem>
        )}
        {!damaged && (
          <>
            <DropdownItem icon={<Pencil />} onSelect={() => setOpen("rename")}>
              {t("session.rename")}
            </DropdownItem>
            {session.status === "running" && (
              <DropdownItem icon={<Square />} onSelect={() => stopSession(session.id)}>
                {t("composer.stop")}
              </DropdownItem>
            )}
            <DropdownItem
              icon={<GitFork />}
              disabled={!session.claudeSessionId}
              onSelect={() => forkSession(session.id)}
            >
              {t("session.fork")}
            </DropdownItem>
            <DropdownItem icon={<Anchor />} onSelect={() => setOpen("hooks")}>
              {t("hooks.menu")}
            </DropdownItem>
            <DropdownItem
              icon={archived ? <ArchiveRestore /> : <Archive />}
              onSelect={() => archiveSession(session.id, !archived)}
            >
              {archived ? t("session.unarchive") : t("session.archive")}
            </DropdownItem>
          </>
        )}
        <DropdownItem icon={<Copy />} onSelect={copyId}>
          {t("session.copyId")}
        </DropdownItem>
        <DropdownSeparator />
        <DropdownItem
          icon={<Trash2 />}
          danger
          onSelect={() => (session.status === "running" ? setOpen("delete") : remove())}
        >
          {t("session.delete")}
        </DropdownItem>
      </Dropdown>
      <RenameDialog session={session} open={open === "rename"} onClose={close} />
      <HooksDialog session={session} open={open === "hooks"} onClose={close} />
      <TerminalDialog session={session} open={open === "terminal"} onClose={close} />
      <Modal
        open={open === "delete"}
        onClose={close}
        title={t("session.deleteRunning.title")}
        description={t("session.deleteRunning.text")}
      >
        <div className="flex justify-end gap-2 pt-1">
          <Button onClick={close}>{t("common.cancel")}</Button>
          <Button variant="danger" onClick={remove}>
            {t("session.deleteRunning.confirm")}
          </Button>
        </div>
      </Modal>
    </>
  );
}
