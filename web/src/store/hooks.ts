import { useMemo } from "react";
import { useStore } from "zustand";
import type { SessionInfo } from "../gen/events";
import type { SessionLog } from "../session/log";
import { sortedSessions } from "../session/sessions";
import { ofSession, type Sent } from "./outbox";
import { type AppState, store } from "./state";

export function useApp<T>(select: (state: AppState) => T): T {
  return useStore(store, select);
}

export function useSession(id: string): SessionInfo | undefined {
  return useApp((state) => state.sessions.get(id));
}

export function useLog(id: string): SessionLog | undefined {
  return useApp((state) => state.logs.get(id));
}

/** The session's prompts that are not acknowledged yet, oldest first. */
export function useSending(id: string): readonly Sent[] {
  const sending = useApp((state) => state.outbox.sending);
  return useMemo(() => ofSession(sending, id), [sending, id]);
}

/** The session's prompts that were refused and belong back into its field, oldest first. */
export function useReturned(id: string): readonly Sent[] {
  const returned = useApp((state) => state.outbox.returned);
  return useMemo(() => ofSession(returned, id), [returned, id]);
}

/** All sessions that are not about to be deleted, newest first. */
export function useSessionList(): readonly SessionInfo[] {
  const sessions = useApp((state) => state.sessions);
  const leaving = useApp((state) => state.leaving);
  return useMemo(
    () =>
      sortedSessions(sessions).filter(
        (session) => !leaving.has(session.id) && session.deleteAt === undefined,
      ),
    [sessions, leaving],
  );
}
