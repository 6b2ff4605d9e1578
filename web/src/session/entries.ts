/** From events, pages of history and lines of transcripts to the entries that a conversation is folded from. Pure. */
import type { Attachment, SessionStatus, UiContext } from "../gen/events";
import { asObject, asObjects, asString } from "../wire/json";
import { type AgentMessage, readMessage } from "./message";

/** What the log of a session holds, as far as the conversation is concerned. `seq` orders it. */
export type Entry =
  | {
      readonly kind: "prompt";
      readonly seq: number;
      readonly prompt: string;
      readonly promptId?: string;
      /** What the agent knows it by. */
      readonly uuid?: string;
      readonly attachments?: readonly Attachment[];
      readonly context?: UiContext;
    }
  | {
      readonly kind: "message";
      readonly seq: number;
      readonly message: AgentMessage;
      /** As it was said. */
      readonly raw: unknown;
    }
  | {
      readonly kind: "status";
      readonly seq: number;
      readonly status: SessionStatus;
      readonly error?: string;
    };

/** What an agent said, whatever it looks like. */
export const messageEntry = (seq: number, raw: unknown): Entry => ({
  kind: "message",
  seq,
  message: readMessage(raw),
  raw,
});

/** An entry of a history: a prompt, which is our own record, or what an agent said. */
export function historyEntry(seq: number, record: unknown): Entry {
  const message = readMessage(record);
  if (message.type !== "user_prompt") return messageEntry(seq, record);
  return {
    kind: "prompt",
    seq,
    prompt: asString(message.prompt) ?? "",
    promptId: asString(message.promptId),
    uuid: asString(message.uuid),
    attachments: asObjects(message.attachments) as unknown as Attachment[],
    context: asObject(message.context) as UiContext | undefined,
  };
}
