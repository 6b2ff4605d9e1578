/** Transcripts of the history as entries of a conversation: the server tells them as a live session tells its messages. Pure. */
import type { TranscriptEntry } from "../gen/history";
import { type Entry, historyEntry } from "./entries";

/** `first` is the number of the first of them in its session, so that each keeps its place when others come before. */
export function entriesOf(told: readonly TranscriptEntry[], first: number): Entry[] {
  return told.flatMap(({ message }, index) =>
    message === undefined ? [] : [historyEntry(first + index + 1, message)],
  );
}

/** The place of the line that an entry came from. */
export const indexOf = (seq: number, first: number): number => seq - 1 - first;
