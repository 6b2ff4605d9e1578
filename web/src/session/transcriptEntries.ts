/** Transcripts of the history as entries of a conversation: the server sends them in the form of a live session. Pure. */
import type { TranscriptEntry } from "../gen/history";
import { type Entry, messageEntry, promptEntry } from "./entries";
import { readMessage } from "./message";

/** `first` is the number of the first of them in its session, so that each keeps its place when others come before. */
export function entriesOf(told: readonly TranscriptEntry[], first: number): Entry[] {
  return told.flatMap(({ message, timestamp }, index) =>
    message === undefined ? [] : [entryOf(first + index + 1, message, Date.parse(timestamp) || undefined)],
  );
}

/** The server writes the prompts of a transcript itself; no line of an agent has their type. */
const entryOf = (seq: number, message: unknown, at: number | undefined): Entry =>
  readMessage(message).type === "user_prompt"
    ? promptEntry(seq, message, at)
    : messageEntry(seq, message, at);

/** The place of the line that an entry came from. */
export const indexOf = (seq: number, first: number): number => seq - 1 - first;
