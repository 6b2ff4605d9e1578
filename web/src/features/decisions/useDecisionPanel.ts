import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { decisionKey, type Focus } from "../../session/decisions/keys";
import { activePane, DIALOG, focusComposer, inActivePane, isComposer, WAITING } from "../../ui/focus";

/** How long a request must have been in view before it can be answered: an earlier key or click was meant for something else. */
const READING_MS = 500;

/** The names of keys are the same in every language. */
export const keyNames = { allow: "Ctrl ↵", always: "Alt A", edit: "Alt E", deny: "Alt D" } as const;

export interface DecisionActions {
  allow?: () => void;
  always?: () => void;
  edit?: () => void;
  deny?: () => void;
  /** Chooses the option with this number, from 1. */
  choose?: (number: number) => void;
}

interface DecisionPanelState<T> {
  ref: RefObject<T | null>;
  /** The request has been in view for long enough. */
  ready: boolean;
  /** For the panel's element. */
  marks: { "data-decision": "waiting" | "sent"; "aria-busy": boolean };
}

/**
 * The keys and the focus of what waits for the user. Keys belong to the panel that has the focus, else to the first on the page; in
 * a field with text they are text. After an answer the focus goes to the next request, else to the message field.
 */
export function useDecisionPanel<T extends HTMLElement>(
  actions: DecisionActions,
  sent: boolean,
): DecisionPanelState<T> {
  const ref = useRef<T>(null);
  const ready = useInView(ref);
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    const panel = ref.current;
    if (!panel) return undefined;
    decides.set(panel, (action) => (ready ? latest.current[action]?.() : panel.focus()));
    return () => {
      decides.delete(panel);
    };
  }, [ready]);

  // Takes the focus when nothing else has it, so that one key answers. A user who is typing keeps it.
  // In the layout phase: later, the panel and with it the focus would be gone before anyone looks.
  useLayoutEffect(() => {
    const panel = ref.current;
    const active = document.activeElement;
    const isFree = isLent(active) || (focusOf(active) === "free" && !active?.closest(WAITING));
    if (isFree && inActivePane(panel)) panel?.focus({ preventScroll: true });
    return () => {
      if (panel?.contains(document.activeElement)) moveOn(panel);
    };
  }, []);

  useEffect(() => {
    // A field or a button that had the focus may be gone by now, and the focus with it.
    const active = document.activeElement;
    if (sent && ref.current && (active === document.body || ref.current.contains(active)))
      moveOn(ref.current);
  }, [sent]);

  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      const panel = ref.current;
      if (!panel || sent || event.isComposing || event.repeat || !isAddressed(panel)) return;
      const meaning = decisionKey(event, focusOf(document.activeElement));
      const act = meaning === undefined ? undefined : actionOf(latest.current, meaning, panel);
      if (!act) return;
      event.preventDefault();
      event.stopPropagation();
      if (ready || meaning === "next" || meaning === "previous") act();
    }
    // Before the message field, which breaks the line with Ctrl+Enter.
    window.addEventListener("keydown", onKeyDown, true);
    return () => window.removeEventListener("keydown", onKeyDown, true);
  }, [sent, ready]);

  return { ref, ready, marks: { "data-decision": sent ? "sent" : "waiting", "aria-busy": !ready } };
}

/** What each panel does when it is told from elsewhere: what has not been in view yet is only shown. */
const decides = new Map<Element, (action: "allow" | "always" | "deny") => void>();

/** Answers the request whose keys would be meant now: the one that has the focus, else the first on the page. */
export function decide(action: "allow" | "always" | "deny"): void {
  const panel = document.activeElement?.closest(WAITING) ?? waiting()[0];
  if (panel) decides.get(panel)?.(action);
}

function actionOf(
  actions: DecisionActions,
  meaning: NonNullable<ReturnType<typeof decisionKey>>,
  panel: HTMLElement,
): (() => void) | undefined {
  if (typeof meaning === "number") {
    const { choose } = actions;
    return choose && (() => choose(meaning));
  }
  if (meaning === "next") return neighbour(panel, 1);
  if (meaning === "previous") return neighbour(panel, -1);
  return actions[meaning];
}

const waiting = () => [...activePane().querySelectorAll<HTMLElement>(WAITING)];

function neighbour(panel: HTMLElement, step: 1 | -1): (() => void) | undefined {
  const panels = waiting();
  const next = panels[panels.indexOf(panel) + step];
  return next && (() => next.focus());
}

function isAddressed(panel: HTMLElement): boolean {
  // A dialog in front takes the keys.
  if (document.querySelector(DIALOG)) return false;
  const focused = document.activeElement?.closest(WAITING);
  return focused ? focused === panel : waiting()[0] === panel;
}

function focusOf(element: Element | null): Focus {
  // A field that has just been disabled keeps the focus for a moment.
  if (element?.matches(":disabled")) return "free";
  if (element instanceof HTMLTextAreaElement)
    return isComposer(element) && element.value === ""
      ? "empty"
      : element.closest(WAITING)
        ? "answering"
        : "typing";
  if (element instanceof HTMLInputElement)
    return element.type === "radio" || element.type === "checkbox" ? "free" : "typing";
  if (element instanceof HTMLSelectElement) return "typing";
  return element instanceof HTMLElement && element.isContentEditable ? "typing" : "free";
}

function moveOn(panel: HTMLElement): void {
  // Once the panel is gone or shows that its answer was sent.
  requestAnimationFrame(() => {
    const next = waiting().find((each) => each !== panel);
    if (next) next.focus();
    else lendToComposer();
  });
}

/** The message field that got the focus after an answer. It gives the focus to the next request, unless it has been used since. */
let lent: Element | undefined;

function lendToComposer(): void {
  focusComposer();
  lent = document.activeElement ?? undefined;
  const used = new AbortController();
  const take = () => {
    lent = undefined;
    used.abort();
  };
  for (const sign of ["keydown", "pointerdown"])
    addEventListener(sign, take, { capture: true, signal: used.signal });
}

const isLent = (element: Element | null): boolean =>
  element !== null && element === lent && focusOf(element) === "empty";

function useInView(ref: RefObject<HTMLElement | null>): boolean {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const observer = new IntersectionObserver(([entry]) => {
      clearTimeout(timer);
      if (entry?.isIntersecting) timer = setTimeout(() => setReady(true), READING_MS);
      else setReady(false);
    });
    observer.observe(element);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [ref]);
  return ready;
}
