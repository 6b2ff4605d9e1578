import { type KeyboardEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { type ListRow, typedAhead } from "../store/sections";

/** For the element of a row that takes the focus: one of them is reached with Tab, the others with the arrows. */
export interface RowMarks {
  readonly "data-row": string;
  readonly tabIndex: 0 | -1;
  readonly onFocus: () => void;
}

export interface ListActions {
  readonly scrollTo: (index: number) => void;
  /** Folds or unfolds a section; shows the rest of one. */
  readonly toggle: (row: ListRow, open?: boolean) => void;
  /** Moves a row by one place. */
  readonly move: (row: ListRow, step: 1 | -1) => void;
  readonly openBeside: (row: ListRow) => void;
}

interface ListKeys {
  readonly marksOf: (row: ListRow) => RowMarks;
  readonly onKeyDown: (event: KeyboardEvent) => void;
  /** Gives the row at this place the focus, also if it is out of sight. */
  readonly focusAt: (index: number) => void;
}

/** How long letters are parts of one word. */
const TYPING_MS = 700;

/**
 * The keys of the list: arrows, Home and End, left and right to fold and unfold, letters to find a title, Alt with the arrows to
 * move. Enter is the link's own.
 */
export function useListKeys(
  rows: readonly ListRow[],
  list: RefObject<HTMLElement | null>,
  current: string | undefined,
  actions: ListActions,
): ListKeys {
  const [active, setActive] = useState<string>();
  /** The row that gets the focus as soon as it is drawn. */
  const wanted = useRef<string>(undefined);
  const typed = useRef({ text: "", at: 0 });
  // One row is always within reach: the last one that had the focus, else the open session, else the first.
  const known = (key: string | undefined) => key !== undefined && rows.some((row) => row.key === key);
  const reachable = known(active) ? active : known(current) ? current : rows[0]?.key;

  const focusWanted = useCallback(() => {
    if (wanted.current === undefined) return;
    const row = list.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.current)}"]`);
    if (!row) return;
    wanted.current = undefined;
    row.focus({ preventScroll: true });
  }, [list]);
  // After every drawing: the row may have been out of sight.
  useEffect(focusWanted);

  function focusAt(index: number): void {
    const row = rows[index];
    if (!row) return;
    wanted.current = row.key;
    setActive(row.key);
    actions.scrollTo(index);
    requestAnimationFrame(focusWanted);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing || !(event.target instanceof HTMLElement)) return;
    const key = event.target.dataset.row;
    const at = rows.findIndex((row) => row.key === key);
    const row = rows[at];
    if (!row) return;
    const act = actionOf(event, row, at);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  function actionOf(event: KeyboardEvent, row: ListRow, at: number): (() => void) | undefined {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    if (altKey && !ctrlKey && !metaKey) {
      const step = key === "ArrowUp" ? -1 : key === "ArrowDown" ? 1 : undefined;
      if (step === undefined) return undefined;
      return () => {
        // It keeps the focus wherever it comes to stand.
        wanted.current = row.key;
        actions.move(row, step);
      };
    }
    if ((ctrlKey || metaKey) && !shiftKey && key === "Enter" && row.kind === "session")
      return () => actions.openBeside(row);
    if (ctrlKey || metaKey) return undefined;
    switch (key) {
      case "ArrowDown":
        return () => focusAt(Math.min(rows.length - 1, at + 1));
      case "ArrowUp":
        return () => focusAt(Math.max(0, at - 1));
      case "Home":
        return () => focusAt(0);
      case "End":
        return () => focusAt(rows.length - 1);
      case "ArrowRight":
        return () => (row.kind === "session" ? undefined : actions.toggle(row, true));
      case "ArrowLeft":
        return () => {
          const header = rows.findIndex((each) => each.kind === "header" && each.section === row.section);
          if (row.kind === "header") actions.toggle(row, false);
          else if (header >= 0) focusAt(header);
        };
      default:
        // A space in the middle of a word is part of it; elsewhere it is a click.
        if (key.length !== 1 || (key === " " && !isTyping())) return undefined;
        return () => find(key, at);
    }
  }

  const isTyping = () => performance.now() - typed.current.at < TYPING_MS;

  function find(letter: string, at: number): void {
    const text = (isTyping() ? typed.current.text : "") + letter;
    typed.current = { text, at: performance.now() };
    const found = typedAhead(rows, text, at);
    if (found >= 0) focusAt(found);
  }

  const marksOf = (row: ListRow): RowMarks => ({
    "data-row": row.key,
    tabIndex: row.key === reachable ? 0 : -1,
    onFocus: () => setActive(row.key),
  });

  return { marksOf, onKeyDown, focusAt };
}
