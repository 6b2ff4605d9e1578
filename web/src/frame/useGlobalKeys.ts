import { useEffect } from "react";
import { clearView } from "../store/cleared";
import { openFind } from "../store/finding";
import { openPalette, usePalette } from "../store/palette";
import { usePanel } from "../store/panel";
import { store } from "../store/state";
import { beginAfresh } from "../features/start/afresh";
import { currentRoute, goToPage } from "../store/route";
import { useNavigation } from "../store/navigation";
import { closePane, isSplit, nextPane, openBeside, toggleChanges, usePanes } from "../store/panes";
import { openNth } from "../store/tabs";
import { DIALOG, focusComposer } from "../ui/focus";
import { goToList } from "./goToList";
import { goToWaiting } from "./goToWaiting";

/** The keys that work everywhere. The shortcuts page lists them. */
export function useGlobalKeys(): void {
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.isComposing || event.defaultPrevented) return;
      const action = actionOf(event);
      if (!action) return;
      event.preventDefault();
      action();
    }
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function actionOf(event: KeyboardEvent): (() => void) | undefined {
  const control = (event.ctrlKey || event.metaKey) && !event.altKey;
  const key = event.key.toLowerCase();
  const route = currentRoute();
  if (control && key === "k") return usePalette.getState().open ? undefined : openPalette;
  // What lies over the page has the keys while it is there.
  if (document.querySelector(`${DIALOG}, [role=menu], [role=listbox]:not([data-inline])`)) return undefined;
  if (control && !event.shiftKey) {
    if (key === "b") return useNavigation.getState().toggle;
    if (key === "j") return usePanel.getState().toggle;
    if (key === "l") return clearCurrent;
    // The browser's own search would find only what happens to be drawn.
    if (key === "f" && currentRoute().view === "session") return openFind;
  }
  if (event.altKey && !event.ctrlKey && !event.metaKey) {
    if (event.code === "KeyN") return () => beginAfresh();
    if (event.code === "KeyI") return () => goToPage("inbox");
    if (event.code === "KeyJ") return () => goToWaiting(1);
    if (event.code === "KeyK") return () => goToWaiting(-1);
    if (event.code === "KeyS") return goToList;
    if (event.code === "Backslash") return () => openBeside({ kind: "empty" });
    if (event.code === "KeyC" && route.view === "session") return () => toggleChanges(route.id);
    if (event.code === "KeyO" && isSplit())
      return () => {
        nextPane(event.shiftKey ? -1 : 1);
        requestAnimationFrame(() => focusComposer());
      };
    if (event.code === "KeyW" && isSplit())
      return () => {
        closePane(usePanes.getState().active);
        requestAnimationFrame(() => focusComposer());
      };
    const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
    if (digit) return () => openNth(Number(digit));
  }
  if (event.key === "?" && !control && !isTyping(event.target)) return () => goToPage("shortcuts");
  return undefined;
}

function clearCurrent(): void {
  const route = currentRoute();
  const session = route.view === "session" ? store.getState().sessions.get(route.id) : undefined;
  if (session) clearView(session.id, session.lastSeq);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
