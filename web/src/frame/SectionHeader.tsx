import { ChevronRight, Ellipsis, Pencil, Trash2 } from "lucide-react";
import { type DragEvent, memo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { removeGroup } from "../store/arrange";
import { UNDO_MS } from "../store/controller";
import { groupOf } from "../store/moves";
import { usePending } from "../store/queue";
import type { Section } from "../store/sections";
import { Dropdown, DropdownItem } from "../ui/Dropdown";
import { iconButtonClass } from "../ui/IconButton";
import { toasts } from "../ui/toasts";
import { tellOffline } from "../features/settings/offline";
import { GroupDialog } from "../features/settings/GroupDialog";
import { Count } from "./Count";
import type { RowMarks } from "./useListKeys";

interface SectionHeaderProps {
  section: Section;
  open: boolean;
  top: number;
  height: number;
  marks: RowMarks;
  /** Something is dragged here. */
  target: boolean;
  onToggle: () => void;
  drag: {
    draggable: boolean;
    onDragStart: (event: DragEvent) => void;
    onDragEnd: () => void;
    onDragOver: (event: DragEvent) => void;
    onDrop: (event: DragEvent) => void;
  };
}

/** Says what the sessions below have in common; a click folds them away. */
export const SectionHeader = memo(function SectionHeader({
  section,
  open,
  top,
  height,
  marks,
  target,
  onToggle,
  drag,
}: SectionHeaderProps) {
  const { t } = useTranslation();
  const { kind, sessions } = section;
  const group = groupOf(section);
  const title = kind === "group" || kind === "project" ? section.title : t(`list.section.${kind}`);
  return (
    <li
      className="group absolute inset-x-0 top-0"
      style={{ transform: `translateY(${top}px)`, height }}
      {...drag}
    >
      <button
        type="button"
        aria-expanded={open}
        title={section.cwd}
        onClick={onToggle}
        {...marks}
        className={cn(
          "absolute inset-x-0 bottom-0 flex h-7 items-center gap-1 rounded-lg pr-9 pl-1.5 text-left text-xs font-medium text-ink-3 hover:text-ink pointer-coarse:h-10",
          kind === "needs" && "text-wait",
          target && "bg-accent-soft text-accent",
        )}
      >
        <ChevronRight
          className={cn("size-3 shrink-0 transition-transform", open && "rotate-90")}
          aria-hidden
        />
        <span className="truncate">{title}</span>
        {kind === "needs" ? (
          <NeedsCount />
        ) : (
          (kind === "running" || !open) && (
            <span className="shrink-0 text-2xs text-ink-3 tabular-nums">{sessions.length}</span>
          )
        )}
      </button>
      {group !== undefined && <GroupMenu id={group} name={section.title} />}
    </li>
  );
});

function NeedsCount() {
  return <Count value={usePending()} className="ml-0.5" />;
}

function GroupMenu({ id, name }: { id: string; name: string }) {
  const { t } = useTranslation();
  const [renaming, setRenaming] = useState(false);

  function remove(): void {
    const undo = removeGroup(id);
    if (!undo) {
      tellOffline();
      return;
    }
    const toast = toasts.add({
      title: t("sessionGroup.removed", { name }),
      timeout: UNDO_MS,
      actionProps: {
        children: t("common.undo"),
        onClick() {
          toasts.close(toast);
          if (!undo()) tellOffline();
        },
      },
    });
  }

  return (
    <>
      <Dropdown
        label={t("sessionGroup.menu", { name })}
        trigger={<Ellipsis className="size-4" />}
        triggerClassName={cn(
          iconButtonClass,
          "absolute right-1.5 bottom-0 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 data-[popup-open]:opacity-100 pointer-coarse:opacity-100",
        )}
      >
        <DropdownItem icon={<Pencil />} onSelect={() => setRenaming(true)}>
          {t("sessionGroup.rename")}
        </DropdownItem>
        <DropdownItem icon={<Trash2 />} danger onSelect={remove}>
          {t("sessionGroup.remove")}
        </DropdownItem>
      </Dropdown>
      <GroupDialog open={renaming} onClose={() => setRenaming(false)} group={{ id, name }} />
    </>
  );
}
