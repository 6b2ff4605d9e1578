import { useEffect } from "react";
import { clearView } from "../store/cleared";
import { openPalette, usePalette } from "../store/palette";
import { usePanel } from "../store/panel";
import { store } from "../store/state";
import { beginAfresh } from "../features/start/afresh";
import { currentRoute, go, goToPage } from "../store/route";
import { useNavigation } from "../store/navigation";
import { useTabs } from "../store/tabs";

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
  if (control && key === "k") return usePalette.getState().open ? undefined : openPalette;
  // What lies over the page has the keys while it is there.
  if (document.querySelector("[role=dialog], [role=menu], [role=listbox]")) return undefined;
  if (control && !event.shiftKey) {
    if (key === "b") return useNavigation.getState().toggle;
    if (key === "j") return usePanel.getState().toggle;
    if (key === "l") return clearCurrent;
  }
  if (event.altKey && !event.ctrlKey && !event.metaKey) {
    if (event.code === "KeyN") return () => beginAfresh();
    if (event.code === "KeyI") return () => goToPage("inbox");
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

function openNth(place: number): void {
  const id = useTabs.getState().open[place - 1];
  if (id) go({ view: "session", id });
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
