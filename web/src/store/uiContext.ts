/** What the user points at while writing: a file or lines of it. It goes along with the next prompt. */
import { create } from "zustand";
import type { UiContext } from "../gen/events";

const useContexts = create<{ readonly bySession: ReadonlyMap<string, UiContext> }>()(() => ({
  bySession: new Map(),
}));

/** Pointing at a second line of the same file takes everything between the two. */
export function pointAt(before: UiContext | undefined, path: string, line: number): UiContext {
  const file = before?.selectedFile;
  const joined = file?.path === path && file.startLine !== undefined;
  const startLine = joined ? Math.min(file.startLine ?? line, line) : line;
  const endLine = joined ? Math.max(file.endLine ?? line, line) : line;
  return { mode: "conversation", currentView: "session", selectedFile: { path, startLine, endLine } };
}

export function selectLine(sessionId: string, path: string, line: number): void {
  useContexts.setState(({ bySession }) => ({
    bySession: new Map(bySession).set(sessionId, pointAt(bySession.get(sessionId), path, line)),
  }));
}

/** It was sent, or is not wanted. */
export function forgetContext(sessionId: string): void {
  useContexts.setState(({ bySession }) => {
    const next = new Map(bySession);
    next.delete(sessionId);
    return { bySession: next };
  });
}

/** It was sent and did not arrive. What the user has pointed at since counts more. */
export function giveBackContext(sessionId: string, context: UiContext | undefined): void {
  if (!context) return;
  useContexts.setState(({ bySession }) =>
    bySession.has(sessionId) ? { bySession } : { bySession: new Map(bySession).set(sessionId, context) },
  );
}

export function useUiContext(sessionId: string): UiContext | undefined {
  return useContexts((state) => state.bySession.get(sessionId));
}
