import { Menu } from "@base-ui/react/menu";
import { Check, Columns2, FolderPlus, Group, PanelTop, Pin, PinOff, Tag, Ungroup } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { SessionInfo } from "../../gen/events";
import { placementOf } from "../../session/arrangement";
import { pinSession, putIntoGroup } from "../../store/arrange";
import { openDialog } from "../../store/dialogs";
import { useApp } from "../../store/hooks";
import { openBeside } from "../../store/panes";
import { keepTab } from "../../store/tabs";
import { DropdownItem, DropdownSeparator, DropdownSubmenu } from "../../ui/Dropdown";
import { tellOffline } from "./offline";

/** Where a session stands in the list and on the screen. */
export function ArrangeItems({ session }: { session: SessionInfo }) {
  const { t } = useTranslation();
  const { pinned, group } = useApp((state) => placementOf(state.arrangement, session.id));
  const groups = useApp((state) => state.arrangement.groups);
  const put = (into: string | undefined) => putIntoGroup(session.id, into) || tellOffline();
  return (
    <>
      <DropdownItem icon={<Columns2 />} onSelect={() => openBeside({ kind: "session", id: session.id })}>
        {t("panes.beside")}
      </DropdownItem>
      <DropdownItem icon={<PanelTop />} onSelect={() => keepTab(session.id)}>
        {t("tabs.keep")}
      </DropdownItem>
      <DropdownSeparator />
      <DropdownItem
        icon={pinned === undefined ? <Pin /> : <PinOff />}
        onSelect={() => pinSession(session.id, pinned === undefined) || tellOffline()}
      >
        {pinned === undefined ? t("session.pin") : t("session.unpin")}
      </DropdownItem>
      <DropdownSubmenu icon={<Group />} label={t("sessionGroup.move")}>
        {groups.map(({ id, name }) => (
          <DropdownItem key={id} icon={id === group ? <Check /> : <Group />} onSelect={() => put(id)}>
            <span className="max-w-52 truncate">{name}</span>
          </DropdownItem>
        ))}
        {group !== undefined && (
          <DropdownItem icon={<Ungroup />} onSelect={() => put(undefined)}>
            {t("sessionGroup.none")}
          </DropdownItem>
        )}
        {groups.length > 0 && <Menu.Separator className="mx-1 my-1 h-px bg-line" />}
        <DropdownItem icon={<FolderPlus />} onSelect={() => openDialog("group", session.id)}>
          {t("sessionGroup.new")}
        </DropdownItem>
      </DropdownSubmenu>
      <DropdownItem icon={<Tag />} onSelect={() => openDialog("tags", session.id)}>
        {t("tags.edit")}
      </DropdownItem>
      <DropdownSeparator />
    </>
  );
}
