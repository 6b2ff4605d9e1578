import { type DragEvent, useState } from "react";
import type { Sorting } from "../gen/events";
import { type Move, moveTo } from "../store/moves";
import type { ListRow, Section } from "../store/sections";

/** Where what is dragged would come to stand: on a row, before it or after it. */
export interface DropMark {
  readonly key: string;
  readonly side: "on" | "before" | "after";
}

type SessionRow = Extract<ListRow, { kind: "session" }>;

interface ListDrag {
  readonly mark: DropMark | undefined;
  readonly of: (row: ListRow) => {
    draggable: boolean;
    onDragStart: (event: DragEvent) => void;
    onDragEnd: () => void;
    onDragOver: (event: DragEvent) => void;
    onDrop: (event: DragEvent) => void;
  };
}

function sideOf(event: DragEvent): "before" | "after" {
  const { top, height } = event.currentTarget.getBoundingClientRect();
  return event.clientY < top + height / 2 ? "before" : "after";
}

/** Dragging sessions and groups with the mouse. Everything that it does, keys and menus do as well. */
export function useListDrag(
  sorting: Sorting,
  onMove: (row: SessionRow, move: Move) => void,
  onGroup: (dragged: Section, target: Section, side: DropMark["side"]) => void,
): ListDrag {
  const [dragged, setDragged] = useState<ListRow>();
  const [mark, setMark] = useState<DropMark>();

  function end(): void {
    setDragged(undefined);
    setMark(undefined);
  }

  function dropOf(row: ListRow, event: DragEvent): { mark: DropMark; act: () => void } | undefined {
    if (!dragged) return undefined;
    const { section } = row;
    if (dragged.kind === "header") {
      if (row.kind !== "header" || section.kind !== "group" || section.key === dragged.section.key)
        return undefined;
      const side = sideOf(event);
      return { mark: { key: row.key, side }, act: () => onGroup(dragged.section, section, side) };
    }
    if (dragged.kind !== "session") return undefined;
    if (row.kind !== "session") {
      const move = moveTo(dragged.session, dragged.section, section, 0, sorting);
      return move && { mark: { key: row.key, side: "on" }, act: () => onMove(dragged, move) };
    }
    const side = sideOf(event);
    const at = section.sessions.findIndex(({ id }) => id === row.session.id) + (side === "after" ? 1 : 0);
    const move = moveTo(dragged.session, dragged.section, section, at, sorting);
    if (!move) return undefined;
    const shown = move.kind === "group" ? "on" : side;
    return { mark: { key: row.key, side: shown }, act: () => onMove(dragged, move) };
  }

  return {
    mark,
    of: (row) => ({
      draggable:
        row.kind === "session"
          ? row.section.kind !== "found"
          : row.kind === "header" && row.section.kind === "group",
      onDragStart(event) {
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData(
          "text/plain",
          row.kind === "session" ? row.session.title : row.section.title,
        );
        setDragged(row);
      },
      onDragEnd: end,
      onDragOver(event) {
        const drop = dropOf(row, event);
        setMark(drop?.mark);
        if (!drop) return;
        event.preventDefault();
        event.dataTransfer.dropEffect = "move";
      },
      onDrop(event) {
        const drop = dropOf(row, event);
        end();
        if (!drop) return;
        event.preventDefault();
        drop.act();
      },
    }),
  };
}
