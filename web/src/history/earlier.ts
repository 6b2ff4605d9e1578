/** What was said in a conversation before it was continued here: it is in Claude Code's transcript, not in our log. */
import { useEffect, useMemo, useState } from "react";
import type { SessionInfo } from "../gen/events";
import type { Message } from "../gen/history";
import { openLog } from "../session/log";
import { projectRows, type Row } from "../session/rows";
import { append, emptyTranscript, type Transcript } from "../session/transcript";
import { getMessages } from "./api";
import { entriesOf } from "./entries";

/** The newest of them; the history page has all. */
const MOST = 500;

export interface Earlier {
  readonly rows: readonly Row[];
  readonly transcript: Transcript;
}

const nothing: Earlier = { rows: [], transcript: emptyTranscript };

/** `wanted` once everything of our own is there, so that nothing stands before what it belongs behind. */
export function useEarlier(session: SessionInfo, wanted: boolean): Earlier {
  const { id, createdAt } = session;
  const [messages, setMessages] = useState<readonly Message[]>();
  useEffect(() => {
    if (!wanted || messages) return;
    let current = true;
    // Without a transcript, or while it can't be read, there is nothing earlier to show.
    messagesBefore(id, createdAt).then(
      (found) => current && setMessages(found),
      () => current && setMessages([]),
    );
    return () => {
      current = false;
    };
  }, [id, createdAt, wanted, messages]);
  return useMemo(() => (messages && messages.length > 0 ? earlierOf(messages) : nothing), [messages]);
}

async function messagesBefore(id: string, time: number): Promise<readonly Message[]> {
  const first = await getMessages(id, { limit: 1 });
  if (Date.parse(first.session.timestamp) >= time) return [];
  const { messages } = await getMessages(id, { from: "end", limit: MOST });
  return messages.filter((message) => Date.parse(message.timestamp) < time);
}

function earlierOf(messages: readonly Message[]): Earlier {
  const end = { kind: "status" as const, seq: Number.MAX_SAFE_INTEGER, status: "completed" as const };
  const transcript = append(emptyTranscript, [...entriesOf(messages, 0), end]);
  const rows = projectRows({ ...openLog(0, 0), transcript }, "completed");
  // Numbers are counted anew in our own log, so keys must say which they belong to.
  return { transcript, rows: rows.map((row) => ({ ...row, key: `h${row.key}` }) as Row) };
}
