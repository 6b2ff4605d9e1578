/** The list of all sessions: what the server listed, kept up to date by the events that pass by. */
import type { History, ServerEvent, SessionInfo } from "../gen/events";
import { asString } from "../wire/json";
import { isPiece, isSequenced, type SequencedEvent } from "./log";
import { readMessage } from "./message";

export type Sessions = ReadonlyMap<string, SessionInfo>;

export function listSessions(sessions: readonly SessionInfo[]): Sessions {
  return new Map(sessions.map((session) => [session.id, session]));
}

/** What an event has told since a page was read is newer than the page. */
export function mergeSessions(sessions: Sessions, page: readonly SessionInfo[]): Sessions {
  const newer = page.filter(({ id, lastSeq }) => lastSeq >= (sessions.get(id)?.lastSeq ?? 0));
  return new Map([...sessions, ...newer.map((session) => [session.id, session] as const)]);
}

/** Newest first; a session that waits for the user is not moved, it is marked. */
export function sortedSessions(sessions: Sessions): SessionInfo[] {
  return [...sessions.values()].toSorted((a, b) => b.updatedAt - a.updatedAt || a.id.localeCompare(b.id));
}

export function reduceSessions(sessions: Sessions, event: ServerEvent, now: number): Sessions {
  if (event.type === "session.deleted") {
    if (!sessions.has(event.payload.sessionId)) return sessions;
    const next = new Map(sessions);
    next.delete(event.payload.sessionId);
    return next;
  }
  if (event.type === "session.updated") {
    const { session } = event.payload;
    const before = sessions.get(session.id);
    // Events may have told more than the entry knew when it was made.
    const lastSeq = Math.max(before?.lastSeq ?? 0, session.lastSeq);
    return new Map(sessions).set(session.id, { ...session, lastSeq });
  }
  if (event.type === "session.history") return mergeSummary(sessions, event.payload);
  if (!isSequenced(event)) return sessions;
  // Pieces of a message change nothing that the list shows.
  if (isPiece(event)) return sessions;
  const session = sessions.get(event.payload.sessionId);
  // What the listing already counted, a replay says again.
  if (!session || event.payload.seq <= session.lastSeq) return sessions;
  return new Map(sessions).set(session.id, { ...applyTo(session, event, now), lastSeq: event.payload.seq });
}

/** Totals that came with a page of history, unless later ones are known. */
function mergeSummary(sessions: Sessions, { sessionId, summary, lastSeq }: History): Sessions {
  const session = sessions.get(sessionId);
  if (!session || !summary) return sessions;
  if (session.summary && lastSeq < session.lastSeq) return sessions;
  return new Map(sessions).set(sessionId, { ...session, summary });
}

function applyTo(session: SessionInfo, event: SequencedEvent, now: number): SessionInfo {
  switch (event.type) {
    case "session.status":
      return {
        ...session,
        status: event.payload.status,
        title: event.payload.title ?? session.title,
        cwd: event.payload.cwd ?? session.cwd,
        updatedAt: now,
      };
    case "stream.user_prompt":
      return { ...session, lastPrompt: event.payload.prompt, updatedAt: now, canUndoRewind: false };
    case "permission.request":
      return { ...session, pending: session.pending + 1, updatedAt: now };
    case "permission.resolved":
      return { ...session, pending: Math.max(0, session.pending - 1) };
    case "stream.message": {
      const message = readMessage(event.payload.message);
      if (message.type !== "system" || message.subtype !== "init") return session;
      return {
        ...session,
        claudeSessionId: asString(message.session_id) ?? session.claudeSessionId,
        model: session.model ?? asString(message.model),
      };
    }
  }
}
