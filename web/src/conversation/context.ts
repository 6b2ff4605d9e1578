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

export function useUiContext(sessionId: string): { value: UiContext | undefined; clear: () => void } {
  const value = useContexts((state) => state.bySession.get(sessionId));
  const clear = () =>
    useContexts.setState(({ bySession }) => {
      const next = new Map(bySession);
      next.delete(sessionId);
      return { bySession: next };
    });
  return { value, clear };
}
