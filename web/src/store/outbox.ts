/**
 * Prompts that were sent and not yet acknowledged. A connection may break in between: then the log, once it has been
 * caught up with, says whether the prompt arrived. If it did not, it goes back to where it was typed.
 */
import type { ServerEvent } from "../gen/events";

export interface Outbox {
  /** By session. */
  readonly sending: ReadonlyMap<string, string>;
  /** To be put back into the field. */
  readonly returned: ReadonlyMap<string, string>;
}

export const emptyOutbox: Outbox = { sending: new Map(), returned: new Map() };

export function sendPrompt(outbox: Outbox, sessionId: string, prompt: string): Outbox {
  return { ...outbox, sending: new Map(outbox.sending).set(sessionId, prompt) };
}

export function takeReturned(outbox: Outbox, sessionId: string): Outbox {
  return { ...outbox, returned: without(outbox.returned, sessionId) };
}

/** `caughtUp`: the event is the last word about what happened before it. */
export function reduceOutbox(outbox: Outbox, event: ServerEvent, caughtUp: boolean): Outbox {
  if (!("payload" in event) || !("sessionId" in event.payload) || !event.payload.sessionId) return outbox;
  const { sessionId } = event.payload;
  const prompt = outbox.sending.get(sessionId);
  if (prompt === undefined) return outbox;
  const arrived = { ...outbox, sending: without(outbox.sending, sessionId) };
  switch (event.type) {
    case "stream.user_prompt":
      return event.payload.prompt === prompt ? arrived : outbox;
    case "session.queue":
      return event.payload.prompts.includes(prompt) ? arrived : outbox;
    case "session.history":
      if (event.payload.queue.includes(prompt)) return arrived;
      return caughtUp ? { ...arrived, returned: new Map(outbox.returned).set(sessionId, prompt) } : outbox;
    case "runner.error":
      return { ...arrived, returned: new Map(outbox.returned).set(sessionId, prompt) };
    default:
      return outbox;
  }
}

function without(map: ReadonlyMap<string, string>, key: string): ReadonlyMap<string, string> {
  const next = new Map(map);
  next.delete(key);
  return next;
}
