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
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../gen/events";
import { cn } from "../lib/cn";
import { copyText } from "../lib/clipboard";
import { HooksDialog } from "../hooks/HooksDialog";
import { baseName, formatAge } from "../lib/format";
import {
  archiveSession,
  deleteSession,
  forkSession,
  stopSession,
  UNDO_MS,
  undoDeletion,
} from "../store/controller";
import { useApp } from "../store/hooks";
import { Button } from "../ui/Button";
import { Dropdown, DropdownItem, DropdownSeparator } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { Modal } from "../ui/Modal";
import { toasts } from "../ui/toasts";
import { useUnread } from "../session/seen";
import { StatusMark, useMark } from "./StatusMark";
import { RenameDialog } from "./RenameDialog";
import { TerminalDialog } from "./TerminalDialog";
import { useNow } from "./useNow";

interface SessionEntryProps {
  session: SessionInfo;
  /** Where it stands in the list. */
  top: number;
  current: boolean;
  onOpen: () => void;
}

export const SessionEntry = memo(function SessionEntry({ session, top, current, onOpen }: SessionEntryProps) {
  const { t, i18n } = useTranslation();
  const now = useNow();
  const mark = useMark(session);
  const unread = useUnread(session) && !current;
  return (
    <li className="group absolute inset-x-0 top-0" style={{ transform: `translateY(${top}px)` }}>
      <a
        href={`#/s/${session.id}`}
        aria-current={current ? "page" : undefined}
        onClick={onOpen}
        className={cn(
          "flex gap-2.5 rounded-lg py-1.5 pr-9 pl-2.5 transition-colors",
          current ? "bg-active" : "hover:bg-hover",
        )}
      >
        <StatusMark mark={mark} className="mt-[3px]" />
        <span className="min-w-0 flex-1">
          <span className="flex items-center gap-1.5">
            <span className={cn("truncate text-sm text-ink", (current || unread) && "font-medium")}>
              {session.title}
            </span>
            {unread && (
              <span
                role="img"
                aria-label={t("status.unread")}
                className="size-1.5 shrink-0 rounded-full bg-accent"
              />
            )}
          </span>
          <span className="flex items-center gap-1.5 text-xs text-ink-3">
            {mark === "waiting" ? (
              <span className="truncate font-medium text-wait">{t("status.waiting")}</span>
            ) : (
              <span className="truncate">{baseName(session.cwd)}</span>
            )}
            <span aria-hidden>·</span>
            <span className="shrink-0">{formatAge(session.updatedAt, now, i18n.language)}</span>
          </span>
        </span>
      </a>
      <SessionMenu session={session} />
    </li>
  );
});

export function SessionMenu({ session, always = false }: { session: SessionInfo; always?: boolean }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<"terminal" | "delete" | "rename" | "hooks" | undefined>();
  const close = () => setOpen(undefined);
  const { archived } = session;
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
        {!demo && (
          <DropdownItem
            icon={<SquareTerminal />}
            disabled={!session.claudeSessionId}
            onSelect={() => setOpen("terminal")}
          >
            {t("session.terminal")}
          </DropdownItem>
        )}
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
