/**
 * Prompts that were sent and not yet acknowledged, in order. While the connection holds, each gets its answer: a place in
 * the log or in the queue, or a refusal. What was on its way when the connection broke is in doubt. Only a history that
 * was asked for afterwards tells how far the log has to be read to know: what it has not by then did not arrive, and goes
 * back to where it was typed, with all that went along.
 */
import type { NewAttachment, ServerEvent, UiContext } from "../gen/events";

/** What may go along with a prompt. */
export interface PromptExtras {
  readonly attachments?: NewAttachment[];
  readonly context?: UiContext;
}

export interface Prompt extends PromptExtras {
  readonly prompt: string;
}

export interface Sent extends Prompt {
  /** Unique within the page. */
  readonly id: number;
  /** The session's newest event when it was sent: the prompt's own is newer. */
  readonly afterSeq: number;
  /** `asking`: the connection broke before it was acknowledged. A number: the log read up to there has it, or nobody has. */
  readonly doubt?: "asking" | number;
}

export interface Outbox {
  /** By session, oldest first. */
  readonly sending: ReadonlyMap<string, readonly Sent[]>;
  /** To be put back into the field, by session, oldest first. */
  readonly returned: ReadonlyMap<string, readonly Prompt[]>;
  /** How many have been sent. */
  readonly count: number;
}

export const emptyOutbox: Outbox = { sending: new Map(), returned: new Map(), count: 0 };

/** Refusals of other commands, which say nothing about a prompt that is on its way. */
const NOT_ABOUT_PROMPTS: ReadonlySet<string> = new Set([
  "request_not_found",
  "already_answered",
  "queue_changed",
  "busy",
  "unknown_model",
  "takeover_failed",
  "no_agent",
  "unsupported",
  "held_up",
  "agent_failed",
]);

export function sendPrompt(outbox: Outbox, sessionId: string, prompt: Prompt, afterSeq: number): Outbox {
  const sent = { ...prompt, id: outbox.count + 1, afterSeq };
  return {
    ...outbox,
    count: outbox.count + 1,
    sending: withList(outbox.sending, sessionId, [...(outbox.sending.get(sessionId) ?? []), sent]),
  };
}

export function takeReturned(outbox: Outbox, sessionId: string): Outbox {
  return { ...outbox, returned: withList(outbox.returned, sessionId, []) };
}

/** The connection is a new one. What the last one said has been heard; what it was told may have been lost. */
export function doubt(outbox: Outbox): Outbox {
  if (outbox.sending.size === 0) return outbox;
  const sending = new Map<string, readonly Sent[]>();
  for (const [sessionId, each] of outbox.sending)
    sending.set(
      sessionId,
      each.map((sent) => ({ ...sent, doubt: "asking" })),
    );
  return { ...outbox, sending };
}

/** `queued`: the prompts that were known to wait before this event. */
export function reduceOutbox(outbox: Outbox, event: ServerEvent, queued: readonly string[]): Outbox {
  if (!("payload" in event) || !("sessionId" in event.payload) || !event.payload.sessionId) return outbox;
  const { sessionId } = event.payload;
  const sending = outbox.sending.get(sessionId);
  if (!sending) return outbox;
  const left = (rest: readonly Sent[]): Outbox =>
    rest === sending ? outbox : { ...outbox, sending: withList(outbox.sending, sessionId, rest) };
  switch (event.type) {
    case "stream.user_prompt":
      return left(arrived(sending, event.payload.prompt, event.payload.seq));
    case "session.queue":
      return left(newlyQueued(sending, queued, event.payload.prompts));
    case "session.history": {
      const { messages, seqs, lastSeq, queue } = event.payload;
      const told = messages.reduce<readonly Sent[]>(
        (rest, { type, prompt }, index) =>
          type === "user_prompt" && typeof prompt === "string"
            ? arrived(rest, prompt, seqs[index] ?? 0)
            : rest,
        sending,
      );
      const rest = newlyQueued(told, queued, queue);
      if (!rest.some((sent) => sent.doubt === "asking")) return left(rest);
      return left(rest.map((sent) => (sent.doubt === "asking" ? { ...sent, doubt: lastSeq } : sent)));
    }
    case "runner.error": {
      // Commands are taken in order, so the first that this connection carried is the one that was refused.
      const refused = sending.find((sent) => sent.doubt === undefined);
      if (!refused || NOT_ABOUT_PROMPTS.has(event.payload.code)) return outbox;
      return giveBack(outbox, sessionId, [refused]);
    }
    case "session.deleted":
      return left([]);
    default:
      return outbox;
  }
}

/** Gives back what the log, now read up to `last`, should have and has not. */
export function settleDoubts(outbox: Outbox, sessionId: string, last: number): Outbox {
  const lost = outbox.sending
    .get(sessionId)
    ?.filter((sent) => typeof sent.doubt === "number" && sent.doubt <= last);
  return lost?.length ? giveBack(outbox, sessionId, lost) : outbox;
}

function giveBack(outbox: Outbox, sessionId: string, prompts: readonly Sent[]): Outbox {
  const sending = outbox.sending.get(sessionId) ?? [];
  const back = prompts.map(({ prompt, attachments, context }) => ({ prompt, attachments, context }));
  return {
    ...outbox,
    sending: withList(
      outbox.sending,
      sessionId,
      sending.filter((sent) => !prompts.includes(sent)),
    ),
    returned: withList(outbox.returned, sessionId, [...(outbox.returned.get(sessionId) ?? []), ...back]),
  };
}

/** The oldest of those that read like this has its place in the log. */
function arrived(sending: readonly Sent[], prompt: string, seq: number): readonly Sent[] {
  const at = sending.findIndex((sent) => sent.prompt === prompt && sent.afterSeq < seq);
  return at === -1 ? sending : sending.toSpliced(at, 1);
}

function newlyQueued(
  sending: readonly Sent[],
  before: readonly string[],
  now: readonly string[],
): readonly Sent[] {
  const known = [...before];
  let rest = sending;
  for (const prompt of now) {
    const at = known.indexOf(prompt);
    if (at === -1) rest = arrived(rest, prompt, Infinity);
    else known.splice(at, 1);
  }
  return rest;
}

function withList<T>(
  map: ReadonlyMap<string, readonly T[]>,
  key: string,
  list: readonly T[],
): ReadonlyMap<string, readonly T[]> {
  const next = new Map(map);
  if (list.length === 0) next.delete(key);
  else next.set(key, list);
  return next;
}
