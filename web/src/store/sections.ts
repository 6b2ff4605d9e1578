/** How the list of sessions is laid out: what needs the user, what is pinned, what runs, then groups and projects. Pure. */
import type { SessionInfo } from "../gen/events";
import { baseName } from "../lib/format";
import { type Arrangement, ownPlace, placementOf } from "../session/arrangement";
import type { Waiting } from "./queue";

/**
 * Every session stands in one place. One that waits stands among those that need the user, wherever it was; one that runs
 * among the running; a pinned one stays where it is pinned unless it waits.
 */
export type SectionKind = "needs" | "pinned" | "running" | "group" | "project" | "found";

export interface Section {
  readonly key: string;
  readonly kind: SectionKind;
  /** Of a group its name, of a project the name of its folder, and where two have the same name what tells them apart. */
  readonly title: string;
  /** Of a project, its folder. */
  readonly cwd?: string;
  readonly sessions: readonly SessionInfo[];
}

export type ListRow =
  | { readonly kind: "header"; readonly key: string; readonly section: Section; readonly open: boolean }
  | {
      readonly kind: "session";
      readonly key: string;
      readonly section: Section;
      readonly session: SessionInfo;
    }
  | { readonly kind: "more"; readonly key: string; readonly section: Section; readonly hidden: number };

/** How many sessions of a project are shown before someone asks for the others. */
export const FIRST_OF_PROJECT = 6;

export function sectionsOf(
  sessions: readonly SessionInfo[],
  arrangement: Arrangement,
  queue: readonly Waiting[],
): Section[] {
  const places = new Map(queue.map(({ id }, index) => [id, index]));
  const needs: SessionInfo[] = [];
  const pinned: SessionInfo[] = [];
  const running: SessionInfo[] = [];
  const groups = new Map<string, SessionInfo[]>(arrangement.groups.map(({ id }) => [id, []]));
  const projects = new Map<string, SessionInfo[]>();
  for (const session of sessions) {
    const placement = placementOf(arrangement, session.id);
    if (places.has(session.id)) needs.push(session);
    else if (session.archived) continue;
    else if (placement.pinned !== undefined) pinned.push(session);
    else if (session.status === "running") running.push(session);
    else {
      const group = placement.group === undefined ? undefined : groups.get(placement.group);
      if (group) group.push(session);
      else push(projects, session.cwd, session);
    }
  }
  needs.sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
  pinned.sort((a, b) => pinOf(arrangement, a) - pinOf(arrangement, b) || a.id.localeCompare(b.id));
  // In the order in which they were begun, so that none moves while they work.
  running.sort((a, b) => b.createdAt - a.createdAt || a.id.localeCompare(b.id));
  const inOrder = (list: readonly SessionInfo[]) => sorted(list, arrangement);
  const named = projectTitles([...projects.keys()]);
  const listed = [...projects].map(([cwd, list]): Section => ({
    key: `project:${cwd}`,
    kind: "project",
    title: named.get(cwd) ?? cwd,
    cwd,
    sessions: inOrder(list),
  }));
  const sections: Section[] = [
    { key: "needs", kind: "needs", title: "", sessions: needs },
    { key: "pinned", kind: "pinned", title: "", sessions: pinned },
    { key: "running", kind: "running", title: "", sessions: running },
  ];
  return [
    ...sections.filter((section) => section.sessions.length > 0),
    // A group is shown although nothing is in it: something can be put there.
    ...arrangement.groups.map(({ id, name }): Section => ({
      key: `group:${id}`,
      kind: "group",
      title: name,
      sessions: inOrder(groups.get(id) ?? []),
    })),
    ...listed.toSorted((a, b) => byFirst(a, b, arrangement)),
  ];
}

const pinOf = (arrangement: Arrangement, { id }: SessionInfo) => placementOf(arrangement, id).pinned ?? 0;

function sorted(list: readonly SessionInfo[], arrangement: Arrangement): SessionInfo[] {
  return list.toSorted(
    (a, b) => sortKey(arrangement, b) - sortKey(arrangement, a) || a.id.localeCompare(b.id),
  );
}

const sortKey = (arrangement: Arrangement, session: SessionInfo): number =>
  arrangement.sorting === "own" ? ownPlace(arrangement, session) : session.updatedAt;

/** Projects with the newest first; where the order is the viewer's own, by name, so that nothing moves by itself. */
function byFirst(a: Section, b: Section, arrangement: Arrangement): number {
  const [first, second] = [a.sessions[0], b.sessions[0]];
  if (arrangement.sorting === "own" || !first || !second)
    return a.title.localeCompare(b.title) || a.key.localeCompare(b.key);
  return second.updatedAt - first.updatedAt || a.key.localeCompare(b.key);
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** The last part of each path, and more of it where that would be the same twice. */
export function projectTitles(folders: readonly string[]): ReadonlyMap<string, string> {
  const byName = new Map<string, string[]>();
  for (const folder of folders) push(byName, baseName(folder), folder);
  const titles = new Map<string, string>();
  for (const [name, same] of byName) {
    for (const folder of same) {
      const parent = folder.slice(0, Math.max(0, folder.length - name.length - 1));
      titles.set(folder, same.length > 1 && parent !== "" ? `${name} · ${baseName(parent)}` : name);
    }
  }
  return titles;
}

/** The rows of the list. `closed` and `whole` have the keys of sections: those that are folded, and those shown to their end. */
export function rowsOf(
  sections: readonly Section[],
  closed: ReadonlySet<string>,
  whole: ReadonlySet<string>,
  current: string | undefined,
): ListRow[] {
  // One project needs no heading to tell it from others.
  const plain = sections.length === 1 && sections[0]?.kind === "project";
  return sections.flatMap((section): ListRow[] => {
    const { key, kind, sessions } = section;
    const open = plain || kind === "found" || !closed.has(key);
    const header: ListRow[] = plain || kind === "found" ? [] : [{ kind: "header", key, section, open }];
    if (!open) return header;
    const limited = kind === "project" && !plain && !whole.has(key);
    // The one that is open in the page is never among the hidden.
    const shown = limited
      ? sessions.filter((session, index) => index < FIRST_OF_PROJECT || session.id === current)
      : sessions;
    const hidden = sessions.length - shown.length;
    return [
      ...header,
      ...shown.map((session): ListRow => ({ kind: "session", key: session.id, section, session })),
      ...(hidden > 0 ? [{ kind: "more" as const, key: `more:${key}`, section, hidden }] : []),
    ];
  });
}

/** The next row that begins with what was typed, after this one and round again. */
export function typedAhead(rows: readonly ListRow[], typed: string, from: number): number {
  const wanted = typed.toLowerCase();
  const titles = rows.map((row) =>
    (row.kind === "session"
      ? row.session.title
      : row.kind === "header"
        ? row.section.title
        : ""
    ).toLowerCase(),
  );
  // A second letter goes on with the row that the first one found.
  const start = typed.length > 1 ? from : from + 1;
  for (let step = 0; step < rows.length; step += 1) {
    const at = (start + step) % rows.length;
    if (titles[at]?.startsWith(wanted)) return at;
  }
  return -1;
}
