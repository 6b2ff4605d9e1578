/** The messages of a conversation from before it was continued here: they are in Claude Code's transcript, not in our log. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { SessionInfo } from "../../gen/events";
import type { TranscriptEntry } from "../../gen/history";
import { openLog } from "../../session/log";
import { groupQuiet } from "../../session/quiet";
import { projectRows, type Row } from "../../session/rows";
import { append, emptyTranscript, type Transcript } from "../../session/transcript";
import { getEntries } from "../../wire/history";
import { messageIdOf, readMessage } from "../../session/message";
import { entriesOf } from "../../session/transcriptEntries";

/** The newest of them; the history page has all. */
const MOST = 500;

export interface Earlier {
  readonly rows: readonly Row[];
  readonly transcript: Transcript;
}

const nothing: Earlier = { rows: [], transcript: emptyTranscript };

/** `wanted` once everything of our own is there, so that nothing stands before what it belongs behind. */
export function useEarlier(session: SessionInfo, own: Transcript, wanted: boolean): Earlier {
  const { id, createdAt } = session;
  // A fork has its transcript only when its first turn is under way: until one is there, it is asked for again.
  const moment = `${session.status} ${session.claudeSessionId}`;
  const [found, setFound] = useState<{ moment: string; lines?: readonly TranscriptEntry[] }>();
  const asks = wanted && !found?.lines && found?.moment !== moment;
  const log = useRef(own);
  useEffect(() => {
    log.current = own;
  }, [own]);
  useEffect(() => {
    if (!asks) return;
    let current = true;
    linesBefore(id, createdAt).then(
      (lines) => {
        // A fork of one of our own sessions has all of it in its own log.
        if (current) setFound({ moment, lines: hasAny(log.current, lines) ? [] : lines });
      },
      () => current && setFound({ moment }),
    );
    return () => {
      current = false;
    };
  }, [id, createdAt, asks, moment]);
  const lines = found?.lines;
  return useMemo(() => (lines && lines.length > 0 ? earlierOf(lines) : nothing), [lines]);
}

async function linesBefore(id: string, time: number): Promise<readonly TranscriptEntry[]> {
  const first = await getEntries(id, { limit: 1 });
  if (Date.parse(first.session.timestamp) >= time) return [];
  const { entries } = await getEntries(id, { from: "end", limit: MOST });
  return entries.filter((line) => Date.parse(line.timestamp) < time);
}

/** Whether one of these lines stands in a session's own log: an answer has the same id in both. */
export function hasAny(own: Transcript, lines: readonly TranscriptEntry[]): boolean {
  const answers = new Set(lines.flatMap(({ message }) => messageIdOf(readMessage(message)) ?? []));
  return own.entries.some(
    (entry) => entry.kind === "message" && answers.has(messageIdOf(entry.message) ?? ""),
  );
}

function earlierOf(lines: readonly TranscriptEntry[]): Earlier {
  const end = { kind: "status" as const, seq: Number.MAX_SAFE_INTEGER, status: "completed" as const };
  const transcript = append(emptyTranscript, [...entriesOf(lines, 0), end]);
  const rows = groupQuiet(projectRows({ ...openLog(0, 0), transcript }, "completed"));
  // Numbers are counted anew in our own log, so keys must say which they belong to.
  return { transcript, rows: rows.map((row) => ({ ...row, key: `h${row.key}` }) as Row) };
}
