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
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { cn } from "../../lib/cn";
import { forkSession, stopSession } from "../../store/controller";
import { openDialog } from "../../store/dialogs";
import { useApp } from "../../store/hooks";
import { Dropdown, DropdownItem, DropdownSeparator } from "../../ui/Dropdown";
import { iconButtonClass } from "../../ui/IconButton";
import { ArrangeItems } from "./ArrangeItems";
import { askToRemove, copySessionId, toggleArchived } from "./sessionActions";

/** What can be done with a session as a whole. `always`: the button shows also without the pointer over its row. */
export function SessionMenu({ session, always = false }: { session: SessionInfo; always?: boolean }) {
  const { t } = useTranslation();
  const { archived, damaged } = session;
  // The demo agent's conversations are not known to Claude Code.
  const demo = useApp((state) => state.system?.backend.name === "demo");

  return (
    <Dropdown
      label={t("session.menu", { title: session.title })}
      trigger={<Ellipsis className="size-4" />}
      triggerClassName={cn(
        iconButtonClass,
        !always &&
          "absolute top-1/2 right-1.5 -translate-y-1/2 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 data-[popup-open]:opacity-100 pointer-coarse:opacity-100",
      )}
    >
      <ArrangeItems session={session} />
      {!demo && !damaged && (
        <DropdownItem
          icon={<SquareTerminal />}
          disabled={!session.claudeSessionId}
          onSelect={() => openDialog("terminal", session.id)}
        >
          {t("session.terminal")}
        </DropdownItem>
      )}
      {!damaged && (
        <>
          <DropdownItem icon={<Pencil />} onSelect={() => openDialog("rename", session.id)}>
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
          <DropdownItem icon={<Anchor />} onSelect={() => openDialog("hooks", session.id)}>
            {t("hooks.menu")}
          </DropdownItem>
          <DropdownItem
            icon={archived ? <ArchiveRestore /> : <Archive />}
            onSelect={() => toggleArchived(session)}
          >
            {archived ? t("session.unarchive") : t("session.archive")}
          </DropdownItem>
        </>
      )}
      <DropdownItem icon={<Copy />} onSelect={() => copySessionId(session)}>
        {t("session.copyId")}
      </DropdownItem>
      <DropdownSeparator />
      <DropdownItem icon={<Trash2 />} danger onSelect={() => askToRemove(session)}>
        {t("session.delete")}
      </DropdownItem>
    </Dropdown>
  );
}
