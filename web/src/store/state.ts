/** The page's live state, outside React. Changed only by the controller, once a frame at most. */
import { createStore } from "zustand/vanilla";
import type { DriverInfo, ServerEvent, SessionStart } from "../gen/events";
import {
  acceptEvents,
  acceptHistory,
  acceptRefusal,
  isSequenced,
  type SequencedEvent,
  type SessionLog,
} from "../session/log";
import { type Arrangement, noArrangement, reduceArrangement } from "../session/arrangement";
import { reduceSessions, type Sessions } from "../session/sessions";
import type { System } from "../gen/http";
import type { Connection } from "../wire/socket";
import { acceptList, type Listing, noListing, refuseList } from "./listing";
import { emptyOutbox, type Outbox, reduceOutbox } from "./outbox";

export type Access = "unknown" | "granted" | "signedOut";

/** A session that was asked for and has not appeared yet. */
export interface Starting {
  /** What the server's answer will be known by. */
  readonly commandId: string;
  /** Sent again after a broken connection; its prompt id makes it one session. */
  readonly payload: SessionStart;
  /** Where it was typed: its draft is kept until the session has begun. */
  readonly draft: string;
}

export interface AppState {
  readonly access: Access;
  /** The page was opened with a sign-in link that no longer works. */
  readonly deadLink: boolean;
  readonly connection: Connection;
  readonly system: System | undefined;
  readonly listing: Listing;
  /** As far as they are listed. */
  readonly sessions: Sessions;
  /** How the user has arranged them. */
  readonly arrangement: Arrangement;
  /** The logs of sessions that have been opened. */
  readonly logs: ReadonlyMap<string, SessionLog>;
  /** A session that has begun by this page's wish and is not listed yet. */
  readonly expected: string | undefined;
  /** Deleted here, with the chance to undo still open. */
  readonly leaving: ReadonlySet<string>;
  readonly outbox: Outbox;
  readonly starting: Starting | undefined;
  readonly startError: string | undefined;
  /** Who else drives a session's conversation, by session: nothing is sent into it until the user has decided. */
  readonly drivers: ReadonlyMap<string, DriverInfo>;
  /** Why the last prompt was not taken, by session. */
  readonly refused: ReadonlyMap<string, string>;
  /** How the machine does, once someone wants to know. Shares from 0 to 1. */
  readonly statistics: Statistics | undefined;
  /** How many keys and browsers were announced since the page was opened. */
  readonly announced: number;
}

type Statistics = Extract<ServerEvent, { type: "statistics" }>["payload"];

export const initialState: AppState = {
  access: "unknown",
  deadLink: false,
  connection: "connecting",
  system: undefined,
  listing: noListing,
  expected: undefined,
  sessions: new Map(),
  arrangement: noArrangement,
  logs: new Map(),
  leaving: new Set(),
  outbox: emptyOutbox,
  starting: undefined,
  startError: undefined,
  refused: new Map(),
  drivers: new Map(),
  statistics: undefined,
  announced: 0,
};

export const store = createStore<AppState>()(() => initialState);

/** Folds one frame's events into the state. */
export function reduceEvents(state: AppState, events: readonly ServerEvent[], now: number): AppState {
  let { sessions, arrangement, logs, listing, leaving, outbox, statistics, expected } = state;
  const bySession = new Map<string, SequencedEvent[]>();

  for (const event of events) {
    sessions = reduceSessions(sessions, event, now);
    arrangement = reduceArrangement(arrangement, event);
    if (event.type === "session.list") {
      ({ listing, sessions } = acceptList(listing, sessions, event.payload, event.commandId));
      // A list that comes after the news of a session has it, unless it is gone already.
      expected = undefined;
    }
    if (event.type === "session.started") expected = event.payload.sessionId;
    if (event.type === "session.forked") expected = event.payload.newSessionId;
    if (event.type === "statistics") statistics = event.payload;
    if (event.type === "session.history" || event.type === "session.queue") {
      // Their place among the live events counts, so earlier events are folded first.
      logs = flush(logs, bySession);
    }
    outbox = reduceOutbox(outbox, event);
    if (event.type === "session.deleted") {
      logs = withoutKey(logs, event.payload.sessionId);
      leaving = new Set([...leaving].filter((id) => id !== event.payload.sessionId));
    }
    if (event.type === "session.history") {
      logs = change(logs, event.payload.sessionId, (log) =>
        acceptHistory(log, event.payload, event.commandId),
      );
    }
    if (event.type === "session.queue") {
      logs = change(logs, event.payload.sessionId, (log) => ({ ...log, queue: event.payload.items ?? [] }));
    }
    if (event.type === "runner.error" && event.commandId !== undefined) {
      const { commandId } = event;
      const { sessionId, code } = event.payload;
      listing = refuseList(listing, commandId);
      if (sessionId) logs = change(logs, sessionId, (log) => acceptRefusal(log, commandId, code));
    }
    if (isSequenced(event)) {
      const batch = bySession.get(event.payload.sessionId);
      if (batch) batch.push(event);
      else bySession.set(event.payload.sessionId, [event]);
    }
  }
  logs = flush(logs, bySession);
  return { ...state, sessions, arrangement, logs, listing, leaving, outbox, statistics, expected };
}

function flush(logs: AppState["logs"], bySession: Map<string, SequencedEvent[]>): AppState["logs"] {
  let next = logs;
  for (const [id, batch] of bySession) next = change(next, id, (log) => acceptEvents(log, batch));
  bySession.clear();
  return next;
}

export function change(
  logs: AppState["logs"],
  id: string,
  update: (log: SessionLog) => SessionLog,
): AppState["logs"] {
  const log = logs.get(id);
  if (!log) return logs;
  const next = update(log);
  return next === log ? logs : new Map(logs).set(id, next);
}

export function withoutKey<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  if (!map.has(key)) return map;
  const next = new Map(map);
  next.delete(key);
  return next;
}
