/** Prompts and their ids, as events and pages of history name them. Pure. */
import type { History, QueuedPrompt, SessionQueue } from "../gen/events";
import { asString } from "../wire/json";

export type { QueuedPrompt } from "../gen/events";

export const queuedIdsOf = ({ items }: SessionQueue): ReadonlySet<string> => idsOf(items);

/** The ids of all prompts that an answer to `session.history` has: said or waiting. */
export function promptIdsOf({ messages, queueItems }: History): ReadonlySet<string> {
  const said = messages.flatMap((message) =>
    message.type === "user_prompt" ? (asString(message.promptId) ?? []) : [],
  );
  return new Set([...said, ...idsOf(queueItems)]);
}

const idsOf = (queue: readonly QueuedPrompt[] = []): ReadonlySet<string> =>
  new Set(queue.map(({ promptId }) => promptId));
