/** Questions to a session's agent that are no part of the conversation. Each is answered once, or not at all. */
import type { ServerEvent, Subject } from "../gen/events";
import { request } from "./connection";

type Answer = Extract<ServerEvent, { type: "session.answer" }>["payload"];
export type Rewound = Extract<ServerEvent, { type: "session.rewound" }>["payload"];

const waiting = new Map<string, { resolve: (data: unknown) => void; reject: (error: Error) => void }>();
let nextId = 0;
/** The agent may be busy, or of a version that does not know the question. */
const PATIENCE_MS = 15_000;

export function inquire(sessionId: string, subject: Subject, query?: string): Promise<unknown> {
  nextId += 1;
  const requestId = `q${nextId}`;
  return new Promise((resolve, reject) => {
    waiting.set(requestId, { resolve, reject });
    setTimeout(() => fail(requestId, "timeout"), PATIENCE_MS);
    const sent = request({ type: "session.inquire", payload: { sessionId, requestId, subject, query } });
    if (!sent) fail(requestId, "offline");
  });
}

export function acceptAnswer({ requestId, data, error }: Answer): void {
  const asked = waiting.get(requestId);
  waiting.delete(requestId);
  if (error === undefined) asked?.resolve(data);
  else asked?.reject(new Error(error));
}

function fail(requestId: string, reason: string): void {
  const asked = waiting.get(requestId);
  waiting.delete(requestId);
  asked?.reject(new Error(reason));
}

const rewinding = new Map<string, (result: Rewound) => void>();
const rewindKey = (sessionId: string, userMessageId: string, dryRun: boolean) =>
  `${sessionId}:${userMessageId}:${dryRun}`;

/** Puts files back to what they were before a prompt, or tells what that would change. */
export function rewind(sessionId: string, userMessageId: string, dryRun: boolean): Promise<Rewound> {
  return new Promise((resolve, reject) => {
    rewinding.set(rewindKey(sessionId, userMessageId, dryRun), resolve);
    setTimeout(() => reject(new Error("timeout")), PATIENCE_MS);
    const sent = request({ type: "session.rewind", payload: { sessionId, userMessageId, dryRun } });
    if (!sent) reject(new Error("offline"));
  });
}

export function acceptRewound(result: Rewound): void {
  const key = rewindKey(result.sessionId, result.userMessageId, result.dryRun);
  rewinding.get(key)?.(result);
  rewinding.delete(key);
}
