/**
 * The tabs: sessions that are pinned, those that were opened on purpose, and the one that is only being looked at, whose tab
 * the next one takes. Pins are the server's; the rest is kept in this browser.
 */
import { useMemo } from "react";
import { create } from "zustand";
import { readStored, writeStored } from "../lib/storage";
import type { Arrangement } from "../session/arrangement";
import { useApp } from "./hooks";
import { currentRoute, go } from "./route";
import { store } from "./state";

interface TabsState {
  /** Opened on purpose. */
  readonly open: readonly string[];
  /** Looked at, and in nobody's way. */
  readonly visited: string | undefined;
}

export interface Tab {
  readonly id: string;
  readonly kind: "pinned" | "open" | "visited";
}

const MOST_TABS = 24;

function load(): TabsState {
  try {
    const stored: unknown = JSON.parse(readStored("tabs") ?? "[]");
    if (Array.isArray(stored))
      return { open: stored.filter((id) => typeof id === "string"), visited: undefined };
  } catch {
    // What can't be read is not worth keeping.
  }
  return { open: [], visited: undefined };
}

export const useTabs = create<TabsState>()(load);
useTabs.subscribe(({ open }) => writeStored("tabs", JSON.stringify(open)));

/** A tab stays where it is; a new one comes last, and the oldest makes room. */
export function withTab(open: readonly string[], id: string): readonly string[] {
  return open.includes(id) ? open : [...open, id].slice(-MOST_TABS);
}

/** Each session once: pinned ones first. */
export function tabsOf({ placements }: Arrangement, { open, visited }: TabsState): Tab[] {
  const pinned = [...placements]
    .flatMap(([id, placement]) => (placement.pinned === undefined ? [] : [{ id, place: placement.pinned }]))
    .toSorted((a, b) => a.place - b.place || a.id.localeCompare(b.id))
    .map(({ id }): Tab => ({ id, kind: "pinned" }));
  const known = new Set(pinned.map(({ id }) => id));
  const opened = open.filter((id) => !known.has(id)).map((id): Tab => ({ id, kind: "open" }));
  const looked: Tab[] =
    visited !== undefined && !known.has(visited) && !open.includes(visited)
      ? [{ id: visited, kind: "visited" }]
      : [];
  return [...pinned, ...opened, ...looked];
}

/** What is to be shown when the tab is closed: the one that takes its place, or the one before it. */
export function neighbourOf(tabs: readonly Tab[], id: string): string | undefined {
  const at = tabs.findIndex((tab) => tab.id === id);
  return tabs[at + 1]?.id ?? tabs[at - 1]?.id;
}

const current = (): Tab[] => tabsOf(store.getState().arrangement, useTabs.getState());

export function useTabList(): readonly Tab[] {
  const arrangement = useApp((state) => state.arrangement);
  const tabs = useTabs();
  return useMemo(() => tabsOf(arrangement, tabs), [arrangement, tabs]);
}

/** Someone looks at a session. */
export function visitTab(id: string): void {
  useTabs.setState(({ open }) => (open.includes(id) ? {} : { visited: id }));
}

/** Someone wants a session to stay. */
export function keepTab(id: string): void {
  useTabs.setState(({ open, visited }) => ({
    open: withTab(open, id),
    visited: visited === id ? undefined : visited,
  }));
}

export function closeTab(id: string): void {
  const route = currentRoute();
  if (route.view === "session" && route.id === id) {
    const next = neighbourOf(current(), id);
    go(next ? { view: "session", id: next } : { view: "start" });
  }
  useTabs.setState(({ open, visited }) => ({
    open: open.filter((each) => each !== id),
    visited: visited === id ? undefined : visited,
  }));
}

/** The tab at this place, from 1. */
export function openNth(place: number): void {
  const { sessions, leaving } = store.getState();
  const shown = current().filter(({ id }) => sessions.has(id) && !leaving.has(id));
  const tab = shown[place - 1];
  if (tab) go({ view: "session", id: tab.id });
}
