/**
 * What is shown side by side: up to four sessions, or a session beside its changes. One pane is active; it shows what the
 * address names. Kept in this browser.
 */
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";
import { currentRoute, go } from "./route";

export type Pane =
  | { readonly kind: "session"; readonly id: string }
  /** The files that a session has changed. */
  | { readonly kind: "changes"; readonly id: string }
  /** A session is to be chosen for it. */
  | { readonly kind: "empty" };

export interface Layout {
  readonly panes: readonly Pane[];
  /** The share of the width that each has; together 1. */
  readonly sizes: readonly number[];
  /** The active one. */
  readonly active: number;
}

export const MOST_PANES = 4;
/** No pane becomes narrower than this share of the width. */
const LEAST = 0.12;

export const single: Layout = { panes: [{ kind: "empty" }], sizes: [1], active: 0 };

const even = (count: number): number[] => Array.from({ length: count }, () => 1 / count);

const shows = (pane: Pane | undefined, kind: Pane["kind"], id: string): boolean =>
  pane !== undefined && pane.kind !== "empty" && pane.kind === kind && pane.id === id;

/** The layout when the address names this session: the pane that shows it is active, or the active one shows it from now on. */
export function show(layout: Layout, id: string): Layout {
  const { panes, active } = layout;
  // The changes of the session belong to the session as well.
  if (shows(panes[active], "session", id) || shows(panes[active], "changes", id)) return layout;
  const at = panes.findIndex((pane) => shows(pane, "session", id));
  if (at >= 0) return { ...layout, active: at };
  const place = panes[active]?.kind === "changes" ? besideChanges(panes, active) : active;
  const before = panes[place];
  const replaced = panes.with(place, { kind: "session", id });
  // Changes that were shown beside it go along, unless another pane still shows their session.
  const left = before?.kind === "session" ? before.id : undefined;
  const followed =
    left === undefined || replaced.some((pane) => shows(pane, "session", left))
      ? replaced
      : replaced.map((pane): Pane => (shows(pane, "changes", left) ? { kind: "changes", id } : pane));
  return { ...layout, panes: followed, active: place };
}

/** The same while nothing but the panes has changed: one for which a session is to be chosen stays active until then. */
export function shown(layout: Layout, id: string): Layout {
  const { panes, active } = layout;
  const choosing = panes[active]?.kind === "empty" && panes.some((pane) => shows(pane, "session", id));
  return choosing ? layout : show(layout, id);
}

/** The pane of the session whose changes these are, else any that shows no changes, else this one. */
function besideChanges(panes: readonly Pane[], at: number): number {
  const changes = panes[at];
  const own = panes.findIndex((pane) => changes?.kind === "changes" && shows(pane, "session", changes.id));
  const other = panes.findIndex((pane) => pane.kind !== "changes");
  return own >= 0 ? own : other >= 0 ? other : at;
}

/** One more pane, to the right of the active one. The same is not shown twice, and the fifth takes the place of its neighbour. */
export function beside(layout: Layout, pane: Pane): Layout {
  const { panes, active } = layout;
  const at = pane.kind === "empty" ? -1 : panes.findIndex((each) => shows(each, pane.kind, pane.id));
  if (at >= 0) return { ...layout, active: at };
  if (panes.length >= MOST_PANES) {
    const place = active + 1 < panes.length ? active + 1 : active - 1;
    return { ...layout, panes: panes.with(place, pane), active: place };
  }
  const next = panes.toSpliced(active + 1, 0, pane);
  return { panes: next, sizes: even(next.length), active: active + 1 };
}

export function without(layout: Layout, at: number): Layout {
  const { panes, sizes, active } = layout;
  if (panes.length === 1) return layout;
  const left = sizes.filter((_, index) => index !== at);
  const sum = left.reduce((all, size) => all + size, 0);
  const others = panes.filter((_, index) => index !== at);
  return {
    // Changes alone are shown beside nothing: their session takes the place.
    panes: others.map((pane): Pane =>
      others.length === 1 && pane.kind === "changes" ? { kind: "session", id: pane.id } : pane,
    ),
    sizes: left.map((size) => size / sum),
    active: Math.min(active > at ? active - 1 : active, panes.length - 2),
  };
}

/** Moves the edge after the pane `at` by a share of the width, as far as both neighbours allow. */
export function resized(layout: Layout, at: number, by: number): Layout {
  const [left, right] = [layout.sizes[at], layout.sizes[at + 1]];
  if (left === undefined || right === undefined) return layout;
  const least = Math.min(LEAST, left, right);
  const moved = Math.max(least - left, Math.min(right - least, by));
  return { ...layout, sizes: layout.sizes.with(at, left + moved).with(at + 1, right - moved) };
}

/** What was stored, if it makes sense. */
export function readLayout(text: string | undefined): Layout {
  try {
    const { panes, sizes, active } = JSON.parse(text ?? "") as Layout;
    const known = panes.every(
      (pane) =>
        pane.kind === "empty" || (["session", "changes"].includes(pane.kind) && typeof pane.id === "string"),
    );
    const sum = sizes.reduce((all, size) => all + size, 0);
    const sound =
      sizes.length === panes.length && sizes.every((size) => size > 0) && Math.abs(sum - 1) < 0.01;
    if (known && panes.length >= 1 && panes.length <= MOST_PANES && panes[active])
      return { panes, sizes: sound ? sizes : even(panes.length), active };
  } catch {
    // Nothing stored, or nothing readable.
  }
  return single;
}

export const usePanes = create<Layout>()(() => readLayout(readStored("panes")));
usePanes.subscribe((layout) =>
  writeStored("panes", layout.panes.length > 1 ? JSON.stringify(layout) : undefined),
);

export const isSplit = (): boolean => usePanes.getState().panes.length > 1;

/** The address names this session. */
export function showSession(id: string): void {
  usePanes.setState((layout) => show(layout, id));
}

/** The session of a pane; of an empty one, none. */
export const sessionOf = (pane: Pane | undefined): string | undefined =>
  pane === undefined || pane.kind === "empty" ? undefined : pane.id;

/** One pane is in sight at a time. */
const narrow = () => matchMedia("(max-width: 767px)").matches;

/** Puts something beside what is shown, and goes there. */
export function openBeside(pane: Pane): void {
  const route = currentRoute();
  // Nothing is shown to put it beside: it is shown alone.
  if (route.view !== "session") {
    const id = sessionOf(pane);
    if (id !== undefined) go({ view: "session", id });
    return;
  }
  usePanes.setState((layout) => {
    const before = show(layout, route.id);
    const next = beside(before, pane);
    // Who looks at changes goes on writing where they were, unless one pane is all that fits.
    return pane.kind === "changes" && !narrow() ? { ...next, active: before.active } : next;
  });
  follow();
}

export function activate(at: number): void {
  const { active, panes } = usePanes.getState();
  if (at === active || !panes[at]) return;
  usePanes.setState({ active: at });
  follow();
}

export function closePane(at: number): void {
  usePanes.setState((layout) => without(layout, at));
  follow();
}

/** The next pane, round and round. */
export function nextPane(step: 1 | -1): void {
  const { active, panes } = usePanes.getState();
  activate((active + step + panes.length) % panes.length);
}

export function resize(at: number, by: number): void {
  usePanes.setState((layout) => resized(layout, at, by));
}

/** The address names what the active pane shows; looking from pane to pane is not a step to come back from. */
function follow(): void {
  const { panes, active } = usePanes.getState();
  const id = sessionOf(panes[active]);
  if (id !== undefined) go({ view: "session", id }, "replace");
}

/** A session was chosen for a pane. */
export function fillPane(at: number, id: string): void {
  usePanes.setState(({ panes }) => ({ panes: panes.with(at, { kind: "session", id }), active: at }));
  go({ view: "session", id }, "replace");
}

export const isChanges = (pane: Pane | undefined, id: string): boolean => shows(pane, "changes", id);

/** Shows a session's changes beside it, or closes them. */
export function toggleChanges(id: string): void {
  const at = usePanes.getState().panes.findIndex((pane) => isChanges(pane, id));
  if (at < 0) openBeside({ kind: "changes", id });
  else closePane(at);
}
