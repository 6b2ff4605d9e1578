/** A cleared view stands for a new session: what is said to it begins one, in the same folder and with the same settings. */
import type { SessionInfo, SessionStart } from "../../gen/events";
import type { Item } from "../../session/items";
import { useApp } from "../../store/hooks";
import { useClearedUpTo } from "../../store/cleared";

/** True while nothing has been said since the view was cleared. What is running goes on in its own session. Pure. */
export function beginsAnew(
  cleared: number,
  status: SessionInfo["status"] | undefined,
  items: readonly Item[],
): boolean {
  if (cleared === 0 || status === "running") return false;
  const prompt = items.findLast((item) => item.kind === "prompt" && item.parent === undefined);
  return prompt === undefined || prompt.seqs.every((seq) => seq <= cleared);
}

/** Whether the next prompt begins a new session, because the view of this one has been cleared. */
export function useBeginsAnew(id: string): boolean {
  const cleared = useClearedUpTo(id);
  return useApp(({ sessions, logs }) =>
    beginsAnew(cleared, sessions.get(id)?.status, logs.get(id)?.transcript.items ?? []),
  );
}

/** What the new session has in common with the one that was cleared. */
export function likeness({ cwd, settings }: SessionInfo): Omit<SessionStart, "prompt"> {
  return { cwd, ...settings };
}
