/**
 * Where the keyboard is. One rule: when a view appears, and after everything that ends elsewhere, the message field has the
 * focus. A dialog focuses its own field, and a request that waits may be focused in place of the message field.
 */
import { type RefObject, useEffect, useRef } from "react";

/** Marks the field in which the next message is written, on the start page and in a session. */
const COMPOSER = "textarea[data-composer]";
/** Marks the panels that wait for an answer, in the order of the page. */
export const WAITING = "[data-decision=waiting]";
/** What lies over the page and has the keys. One that is closing has them no more, and a message at the edge never has them. */
export const DIALOG = "[role=dialog][data-open], [role=alertdialog][data-open]";

export const isComposer = (element: Element): boolean => element.matches(COMPOSER);

/** Of panes side by side only the active one gets the focus by itself, and keys are meant for what waits there. */
export const activePane = (): ParentNode => document.querySelector("[data-pane=active]") ?? document;

export function inActivePane(element: Element | null): boolean {
  const pane = element?.closest("[data-pane]");
  return !pane || pane.matches("[data-pane=active]");
}

export const composerField = (): HTMLTextAreaElement | null =>
  activePane().querySelector<HTMLTextAreaElement>(`${COMPOSER}:not(:disabled)`);

/** A finger types on a keyboard that covers half of the page: it opens only for those who want to write. */
const byFinger = (): boolean => matchMedia("(pointer: coarse)").matches;

/** `to write`: the user has just chosen what to write about. */
export function focusComposer(reason: "by rule" | "to write" = "by rule"): void {
  if (reason === "by rule" && byFinger()) return;
  take(composerField());
}

/** The message field takes the focus when it appears, and when it can be used again. */
export function useComposerFocus(field: RefObject<HTMLTextAreaElement | null>, disabled = false): void {
  const appeared = useRef(false);
  useEffect(() => {
    if (disabled || byFinger() || !inActivePane(field.current)) return undefined;
    const first = !appeared.current;
    appeared.current = true;
    if (first) take(field.current);
    // A menu or a dialog that has just led here gives the focus back to what opened it.
    const frame = requestAnimationFrame(() => {
      if (!isTaken(document.activeElement)) take(field.current);
    });
    return () => cancelAnimationFrame(frame);
  }, [field, disabled]);
}

/** Where a dialog begins: its field, else its first button. */
export function firstField(content: HTMLElement | null): HTMLElement | null {
  return (
    content?.querySelector<HTMLElement>("input:not(:disabled), textarea:not(:disabled)") ??
    content?.querySelector<HTMLElement>("button:not(:disabled), a[href]") ??
    null
  );
}

/** Where the focus goes when the palette closes: to the message field, unless what was chosen there has taken it. */
export function afterPalette(): HTMLElement | boolean {
  const active = document.activeElement;
  const inside = active?.closest("[role=dialog]");
  const taken = inside ? inside.matches(DIALOG) : isTaken(active);
  return !taken && (composerField() ?? true);
}

/** After a dialog whose opener is gone. */
export function recoverFocus(): void {
  if (document.activeElement === null || document.activeElement === document.body) focusComposer();
}

function take(field: HTMLTextAreaElement | null): void {
  if (!field || field === document.activeElement || document.querySelector(DIALOG)) return;
  field.focus({ preventScroll: true });
  field.setSelectionRange(field.value.length, field.value.length);
}

/** The user writes there, or is asked there. */
function isTaken(element: Element | null): boolean {
  if (!element) return false;
  return (
    element.matches("input:not(:disabled), textarea:not(:disabled), select") ||
    element.closest(WAITING) !== null
  );
}
