/** What was said in a conversation before it was continued here: it is in Claude Code's transcript, not in our log. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { SessionInfo } from "../../gen/events";
import type { Message } from "../../gen/history";
import { openLog } from "../../session/log";
import { projectRows, type Row } from "../../session/rows";
import { append, emptyTranscript, type Transcript } from "../../session/transcript";
import { getMessages } from "../../wire/history";
import { entriesOf } from "../../session/historyEntries";

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
  const [found, setFound] = useState<{ moment: string; messages?: readonly Message[] }>();
  const asks = wanted && !found?.messages && found?.moment !== moment;
  const log = useRef(own);
  useEffect(() => {
    log.current = own;
  }, [own]);
  useEffect(() => {
    if (!asks) return;
    let current = true;
    messagesBefore(id, createdAt).then(
      (messages) => {
        // A fork of one of our own sessions has all of it in its own log.
        if (current) setFound({ moment, messages: hasAny(log.current, messages) ? [] : messages });
      },
      () => current && setFound({ moment }),
    );
    return () => {
      current = false;
    };
  }, [id, createdAt, asks, moment]);
  const messages = found?.messages;
  return useMemo(() => (messages && messages.length > 0 ? earlierOf(messages) : nothing), [messages]);
}

async function messagesBefore(id: string, time: number): Promise<readonly Message[]> {
  const first = await getMessages(id, { limit: 1 });
  if (Date.parse(first.session.timestamp) >= time) return [];
  const { messages } = await getMessages(id, { from: "end", limit: MOST });
  return messages.filter((message) => Date.parse(message.timestamp) < time);
}

/** Whether one of these messages stands in a session's own log. */
export function hasAny(own: Transcript, messages: readonly Message[]): boolean {
  const answers = new Set(messages.flatMap((message) => message.message_id ?? []));
  return own.entries.some(
    (entry) =>
      entry.kind === "message" &&
      entry.message.type === "assistant" &&
      answers.has(entry.message.message?.id ?? ""),
  );
}

function earlierOf(messages: readonly Message[]): Earlier {
  const end = { kind: "status" as const, seq: Number.MAX_SAFE_INTEGER, status: "completed" as const };
  const transcript = append(emptyTranscript, [...entriesOf(messages, 0), end]);
  const rows = projectRows({ ...openLog(0, 0), transcript }, "completed");
  // Numbers are counted anew in our own log, so keys must say which they belong to.
  return { transcript, rows: rows.map((row) => ({ ...row, key: `h${row.key}` }) as Row) };
}
