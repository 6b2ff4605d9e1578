/** The entries of a conversation, page by page from its end, or around a message, and on as it grows. */
import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import type { DecidedCall } from "../../gen/events";
import type { HistoryEntries, Session, TranscriptEntry } from "../../gen/history";
import { getEntries } from "../../wire/history";
import { concerns, useHistoryChanges } from "./live";

const PAGE = 100;
/** How many of the last entries are read again when something was added: a call may have got its result. */
const AGAIN = 60;
/** How often to see whether a program works on the conversation. */
const LOOK_AGAIN_MS = 5_000;
/** The most that one question is answered with. */
const MOST = 1_000;

export interface Reading {
  readonly session: Session;
  readonly resumeCommand: string;
  readonly entries: readonly TranscriptEntry[];
  /** The number of the first of them. */
  readonly first: number;
  readonly total: number;
  /** How permissions were decided, where the conversation is a session here. */
  readonly decided: readonly DecidedCall[];
}

type State =
  | { readonly state: "loading" }
  | { readonly state: "failed"; readonly message: string }
  | { readonly state: "ready"; readonly reading: Reading };

export function useTranscript(
  id: string,
  at: string | undefined,
): { state: State; older: () => void; newer: () => void; again: () => void; retry: () => void } {
  const [state, setState] = useState<State>({ state: "loading" });
  const [round, setRound] = useState(0);
  const busy = useRef(false);

  useEffect(() => {
    let current = true;
    const where = at ? { around: at } : { from: "end" };
    getEntries(id, { ...where, limit: PAGE }).then(
      (page) => current && setState({ state: "ready", reading: joined(page, [], page.offset) }),
      (error: Error) => current && setState({ state: "failed", message: error.message }),
    );
    return () => {
      current = false;
    };
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- each round asks again
  }, [id, at, round]);

  const reading = state.state === "ready" ? state.reading : undefined;

  /** One question at a time: answers are joined to what they were asked beside. */
  const extend = useCallback(
    async (offset: number, limit: number, join: (page: HistoryEntries) => Reading): Promise<void> => {
      if (busy.current || limit <= 0) return;
      busy.current = true;
      try {
        const page = await getEntries(id, { offset, limit: Math.min(limit, MOST) });
        setState({ state: "ready", reading: join(page) });
      } catch {
        // What is there stays; the next scroll or the next change asks again.
      } finally {
        busy.current = false;
      }
    },
    [id],
  );

  const older = useCallback(() => {
    if (!reading || reading.first === 0) return;
    const from = Math.max(0, reading.first - PAGE);
    void extend(from, reading.first - from, (page) =>
      joined(page, [...page.entries, ...reading.entries], from),
    );
  }, [extend, reading]);

  const newer = useCallback(() => {
    if (!reading) return;
    const end = reading.first + reading.entries.length;
    void extend(end, Math.min(PAGE, reading.total - end), (page) =>
      joined(page, [...reading.entries, ...page.entries], reading.first),
    );
  }, [extend, reading]);

  function grow(): void {
    if (!reading) {
      setRound((count) => count + 1);
      return;
    }
    const end = reading.first + reading.entries.length;
    const from = Math.max(reading.first, end - AGAIN);
    void extend(from, MOST, (page) =>
      joined(page, [...reading.entries.slice(0, from - reading.first), ...page.entries], reading.first),
    );
  }
  useHistoryChanges((changes) => concerns(changes, id) && grow());
  const lookAgain = useEffectEvent(grow);
  // A program that comes or ends writes nothing at that moment, so nobody tells of it.
  useEffect(() => {
    const timer = setInterval(lookAgain, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);

  const retry = useCallback(() => {
    setState({ state: "loading" });
    setRound((count) => count + 1);
  }, []);
  return { state, older, newer, again: grow, retry };
}

function joined(page: HistoryEntries, entries: readonly TranscriptEntry[], first: number): Reading {
  const { session, resume_command: resumeCommand, total, decided } = page;
  const all = entries.length > 0 ? entries : page.entries;
  return { session, resumeCommand, total, decided, first, entries: all };
}
