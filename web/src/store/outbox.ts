/**
 * Prompts that were sent and are not acknowledged yet, by their id. A prompt is acknowledged by the direct answer to its
 * command, or by its id in the log or in the queue; it is refused by an error that carries its command's id, and then goes
 * back to where it was typed with everything that went along. After a broken connection it is sent again under the same
 * ids: the server runs a prompt id once.
 */
import type { NewAttachment, UiContext, ServerEvent } from "../gen/events";
import { promptIdsOf, queuedIdsOf } from "../session/prompts";

/** What may go along with a prompt. */
export interface PromptExtras {
  readonly attachments?: NewAttachment[];
  readonly context?: UiContext;
}

export interface Prompt extends PromptExtras {
  readonly prompt: string;
}

export interface Sent extends Prompt {
  readonly promptId: string;
  readonly commandId: string;
  readonly sessionId: string;
}

export interface Outbox {
  /** By prompt id, oldest first. */
  readonly sending: ReadonlyMap<string, Sent>;
  /** Refused, and to be put back into the field of its session. By prompt id, oldest first. */
  readonly returned: ReadonlyMap<string, Sent>;
}

export const emptyOutbox: Outbox = { sending: new Map(), returned: new Map() };

export function sendPrompt(outbox: Outbox, sent: Sent): Outbox {
  return { ...outbox, sending: new Map(outbox.sending).set(sent.promptId, sent) };
}

/** The returned prompts of a session are back in their field. */
export function takeReturned(outbox: Outbox, sessionId: string): Outbox {
  return { ...outbox, returned: without(outbox.returned, (sent) => sent.sessionId === sessionId) };
}

/** Those of one session, oldest first. */
export function ofSession(prompts: ReadonlyMap<string, Sent>, sessionId: string): readonly Sent[] {
  return [...prompts.values()].filter((sent) => sent.sessionId === sessionId);
}

export function reduceOutbox(outbox: Outbox, frame: ServerEvent): Outbox {
  if (outbox.sending.size === 0) return outbox;
  const acknowledge = (isAcknowledged: (sent: Sent) => boolean): Outbox => {
    const sending = without(outbox.sending, isAcknowledged);
    return sending === outbox.sending ? outbox : { ...outbox, sending };
  };
  const isAnswered = ({ commandId }: Sent) => commandId === frame.commandId;
  switch (frame.type) {
    case "session.status":
      return acknowledge(isAnswered);
    case "session.queue": {
      const queued = queuedIdsOf(frame.payload);
      return acknowledge((sent) => isAnswered(sent) || queued.has(sent.promptId));
    }
    case "stream.user_prompt":
      return acknowledge(({ promptId }) => promptId === frame.payload.promptId);
    case "session.history": {
      const known = promptIdsOf(frame.payload);
      return acknowledge(({ promptId }) => known.has(promptId));
    }
    case "session.deleted":
      return acknowledge(({ sessionId }) => sessionId === frame.payload.sessionId);
    case "runner.error": {
      const refused = [...outbox.sending.values()].find(isAnswered);
      if (!refused) return outbox;
      return {
        sending: without(outbox.sending, (sent) => sent === refused),
        returned: new Map(outbox.returned).set(refused.promptId, refused),
      };
    }
    default:
      return outbox;
  }
}

/** The same map where nothing is to go. */
function without(
  prompts: ReadonlyMap<string, Sent>,
  goes: (sent: Sent) => boolean,
): ReadonlyMap<string, Sent> {
  const left = [...prompts].filter(([, sent]) => !goes(sent));
  return left.length === prompts.size ? prompts : new Map(left);
}
