/** The sessions that are open as tabs. Kept in this browser. */
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";
import { currentRoute, go } from "./route";

interface TabsState {
  readonly open: readonly string[];
}

const MOST_TABS = 24;

function load(): TabsState {
  try {
    const stored: unknown = JSON.parse(readStored("tabs") ?? "[]");
    if (Array.isArray(stored)) return { open: stored.filter((id) => typeof id === "string") };
  } catch {
    // What can't be read is not worth keeping.
  }
  return { open: [] };
}

export const useTabs = create<TabsState>()(load);
useTabs.subscribe(({ open }) => writeStored("tabs", JSON.stringify(open)));

/** A tab stays where it is; a new one comes last, and the oldest makes room. */
export function withTab(open: readonly string[], id: string): readonly string[] {
  return open.includes(id) ? open : [...open, id].slice(-MOST_TABS);
}

/** What is to be shown when the tab is closed: the one that takes its place, or the one before it. */
export function neighbourOf(open: readonly string[], id: string): string | undefined {
  const at = open.indexOf(id);
  return open[at + 1] ?? open[at - 1];
}

export function openTab(id: string): void {
  useTabs.setState(({ open }) => ({ open: withTab(open, id) }));
}

export function closeTab(id: string): void {
  const { open } = useTabs.getState();
  const route = currentRoute();
  if (route.view === "session" && route.id === id) {
    const next = neighbourOf(open, id);
    go(next ? { view: "session", id: next } : { view: "start" });
  }
  useTabs.setState({ open: open.filter((each) => each !== id) });
}
