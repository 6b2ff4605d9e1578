/** Questions to a session's agent that are no part of the conversation. Each is answered once, or not at all. */
import type { ClientEvent, ServerEvent, Subject } from "../gen/events";
import { errorText } from "../i18n/errors";
import { newId } from "../lib/id";
import { request } from "./connection";

export type Found = Extract<ServerEvent, { type: "session.found" }>["payload"];
export type Rewound = Extract<ServerEvent, { type: "session.rewound" }>["payload"];

interface Waiting {
  readonly resolve: (frame: ServerEvent) => void;
  readonly reject: (error: Error) => void;
}

/** By the id of the command that asked. */
const waiting = new Map<string, Waiting>();
/** The agent may be busy, or of a version that does not know the question. */
const PATIENCE_MS = 15_000;

/** Resolves with the frame that answers the command, rejects with what refuses it. */
function ask(event: ClientEvent, commandId: string): Promise<ServerEvent> {
  return new Promise((resolve, reject) => {
    waiting.set(commandId, { resolve, reject });
    setTimeout(() => fail(commandId, "timeout"), PATIENCE_MS);
    if (!request(event, commandId)) fail(commandId, "offline");
  });
}

function fail(commandId: string, reason: string): void {
  take(commandId)?.reject(new Error(reason));
}

function take(commandId: string): Waiting | undefined {
  const asked = waiting.get(commandId);
  waiting.delete(commandId);
  return asked;
}

/** True if the frame answers, or refuses, a question of this page. */
export function settle(frame: ServerEvent): boolean {
  const asked = frame.commandId === undefined ? undefined : take(frame.commandId);
  if (frame.type === "runner.error") asked?.reject(new Error(errorText(frame.payload)));
  else asked?.resolve(frame);
  return asked !== undefined;
}

export async function inquire(sessionId: string, subject: Subject, query?: string): Promise<unknown> {
  const requestId = newId();
  const answer = await ask(
    { type: "session.inquire", payload: { sessionId, requestId, subject, query } },
    requestId,
  );
  if (answer.type !== "session.answer") throw new Error(answer.type);
  if (answer.payload.error !== undefined) throw new Error(answer.payload.error);
  return answer.payload.data;
}

/** Takes the conversation, and the files if wanted, back to before a prompt, or tells what that would change. */
export async function rewind(
  sessionId: string,
  userMessageId: string,
  { dryRun, files }: { dryRun: boolean; files: boolean },
): Promise<Rewound> {
  const answer = await ask(
    { type: "session.rewind", payload: { sessionId, userMessageId, dryRun, files, conversation: true } },
    newId(),
  );
  if (answer.type !== "session.rewound") throw new Error(answer.type);
  return answer.payload;
}

/** Undoes the last rewind. Gives the files that were changed since and stay as they are. */
export async function undoRewind(sessionId: string): Promise<readonly string[]> {
  const answer = await ask({ type: "session.unrewind", payload: { sessionId } }, newId());
  if (answer.type !== "session.unrewound") throw new Error(answer.type);
  return answer.payload.left;
}

/** A new session with everything up to this entry. Gives its id. */
export async function forkAt(sessionId: string, atSeq: number): Promise<string> {
  const answer = await ask({ type: "session.fork", payload: { sessionId, atSeq } }, newId());
  if (answer.type !== "session.forked") throw new Error(answer.type);
  return answer.payload.newSessionId;
}

/** Where in the whole conversation these words are. */
export async function find(sessionId: string, query: string): Promise<Found> {
  const answer = await ask({ type: "session.find", payload: { sessionId, query } }, newId());
  if (answer.type !== "session.found") throw new Error(answer.type);
  return answer.payload;
}
