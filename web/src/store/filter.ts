/** Which sessions the list shows. Pure. */
import type { SessionInfo } from "../gen/events";
import { baseName } from "../lib/format";
import { isUnread } from "./seen";

export const sessionFilters = ["all", "waiting", "running", "unread", "archived"] as const;
export type SessionFilter = (typeof sessionFilters)[number];

/** What the list is measured by beside the sessions themselves. */
export interface Circumstances {
  readonly seen: Parameters<typeof isUnread>[1];
  /** The sessions that need the user. */
  readonly waiting: ReadonlySet<string>;
  readonly tagsOf: (id: string) => readonly string[];
}

function passes(session: SessionInfo, filter: SessionFilter, { seen, waiting }: Circumstances): boolean {
  // What waits has to be found wherever it was put.
  if (filter === "waiting") return waiting.has(session.id);
  if (session.archived) return filter === "archived";
  switch (filter) {
    case "all":
      return true;
    case "running":
      return session.status === "running";
    case "unread":
      return isUnread(session, seen);
    case "archived":
      return false;
  }
}

/** Every word is in the title, the folder's name, the last prompt or the tags; one that begins with # is a tag's beginning. */
function contains(session: SessionInfo, words: readonly string[], tags: readonly string[]): boolean {
  const names = tags.map((tag) => `#${tag.toLowerCase()}`);
  const text =
    `${session.title}\n${baseName(session.cwd)}\n${session.lastPrompt ?? ""}\n${session.id}\n${names.join("\n")}`.toLowerCase();
  return words.every((word) =>
    word.startsWith("#") && word.length > 1 && names.length > 0
      ? names.some((name) => name.startsWith(word))
      : text.includes(word),
  );
}

export function filterSessions(
  sessions: readonly SessionInfo[],
  filter: SessionFilter,
  search: string,
  circumstances: Circumstances,
): readonly SessionInfo[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return sessions.filter(
    (session) =>
      passes(session, filter, circumstances) && contains(session, words, circumstances.tagsOf(session.id)),
  );
}
