/** Which sessions the list shows. Pure. */
import type { SessionInfo } from "../gen/events";
import { baseName } from "../lib/format";
import { isUnread } from "./seen";

export const sessionFilters = ["all", "waiting", "running", "unread", "archived"] as const;
export type SessionFilter = (typeof sessionFilters)[number];

/** What the list is measured by beside the sessions themselves. */
export interface Circumstances {
  readonly seen: Parameters<typeof isUnread>[1];
  /** The sessions whose agent has called back and waits for what the user says. */
  readonly calling: ReadonlySet<string>;
}

function passes(session: SessionInfo, filter: SessionFilter, { seen, calling }: Circumstances): boolean {
  if (session.archived) return filter === "archived";
  switch (filter) {
    case "all":
      return true;
    case "waiting":
      return session.pending > 0 || calling.has(session.id);
    case "running":
      return session.status === "running";
    case "unread":
      return isUnread(session, seen);
    case "archived":
      return false;
  }
}

/** Every word is in the title, the folder's name or the last prompt. */
function contains(session: SessionInfo, words: readonly string[]): boolean {
  const text =
    `${session.title}\n${baseName(session.cwd)}\n${session.lastPrompt ?? ""}\n${session.id}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

export function filterSessions(
  sessions: readonly SessionInfo[],
  filter: SessionFilter,
  search: string,
  circumstances: Circumstances,
): readonly SessionInfo[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return sessions.filter((session) => passes(session, filter, circumstances) && contains(session, words));
}
