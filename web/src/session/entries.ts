/** From events, pages of history and lines of transcripts to the entries that a conversation is folded from. Pure. */
import type { Attachment, HistoryKind, SessionStatus, StatusChange, UiContext } from "../gen/events";
import type { TurnFigures } from "../gen/messages";
import { asObject, asObjects, asString } from "../wire/json";
import { type AgentMessage, imagesOf, readMessage } from "./message";

/** An entry of a session's log that the conversation is made from. `seq` orders them. */
export type Entry =
  | {
      readonly kind: "prompt";
      readonly seq: number;
      readonly prompt: string;
      readonly promptId?: string;
      /** The agent's name for it. */
      readonly uuid?: string;
      readonly attachments?: readonly Attachment[];
      readonly context?: UiContext;
      /** Images that a transcript has in it, as data: addresses. */
      readonly images?: readonly string[];
      /** When it was sent, in milliseconds since 1970. */
      readonly at?: number;
    }
  | {
      readonly kind: "message";
      readonly seq: number;
      readonly message: AgentMessage;
      /** The message as the agent wrote it. */
      readonly raw: unknown;
      /** When it came, in milliseconds since 1970. */
      readonly at?: number;
    }
  | {
      readonly kind: "status";
      readonly seq: number;
      readonly status: SessionStatus;
      readonly error?: string;
      /** What the turn took that ended with it. */
      readonly turn?: TurnFigures;
    };

/** A message of the agent, whatever it looks like. */
export const messageEntry = (seq: number, raw: unknown, at?: number): Entry => ({
  kind: "message",
  seq,
  message: readMessage(raw),
  raw,
  at,
});

/** A prompt, as a history has it. */
export function promptEntry(seq: number, raw: unknown, at?: number): Entry {
  const record = asObject(raw) ?? {};
  return {
    kind: "prompt",
    seq,
    prompt: asString(record.prompt) ?? "",
    promptId: asString(record.promptId),
    uuid: asString(record.uuid),
    attachments: asObjects(record.attachments) as unknown as Attachment[],
    context: asObject(record.context) as UiContext | undefined,
    images: imagesOf(record.images),
    at,
  };
}

/** An entry of a history. Only its kind tells what it is: an agent may write what looks like a prompt. */
export const historyEntry = (seq: number, kind: HistoryKind | undefined, raw: unknown, at?: number): Entry =>
  kind === "user_prompt" ? promptEntry(seq, raw, at) : messageEntry(seq, raw, at);

/** A change of status; `undefined` for one that is no event of the log. */
export const statusEntry = ({ seq, status, error, turn }: StatusChange): Entry | undefined =>
  seq === undefined ? undefined : { kind: "status", seq, status, error, turn };

/** When an entry was written, of entries in the order of their numbers. */
export function timeOf(entries: readonly Entry[], seq: number | undefined): number | undefined {
  if (seq === undefined) return undefined;
  let [low, high] = [0, entries.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const entry = entries[middle];
    if (!entry) return undefined;
    if (entry.seq === seq) return "at" in entry ? entry.at : undefined;
    if (entry.seq < seq) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}
