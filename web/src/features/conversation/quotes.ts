/** Words of the conversation on their way into the field. */
import { create } from "zustand";
import type { NewAttachment } from "../../gen/events";

const useQuotes = create<{ readonly bySession: ReadonlyMap<string, string> }>()(() => ({
  bySession: new Map(),
}));

export function quote(sessionId: string, text: string): void {
  useQuotes.setState(({ bySession }) => ({ bySession: new Map(bySession).set(sessionId, text) }));
}

export function takeQuote(sessionId: string): void {
  useQuotes.setState(({ bySession }) => {
    const next = new Map(bySession);
    next.delete(sessionId);
    return { bySession: next };
  });
}

export function useQuote(sessionId: string): string | undefined {
  return useQuotes((state) => state.bySession.get(sessionId));
}

/** A whole prompt that is to be written anew, with its images. */
export interface Refill {
  readonly text: string;
  readonly attachments: readonly NewAttachment[];
}

const useRefills = create<{ readonly bySession: ReadonlyMap<string, Refill> }>()(() => ({
  bySession: new Map(),
}));

export const refill = (sessionId: string, prompt: Refill): void =>
  useRefills.setState(({ bySession }) => ({ bySession: new Map(bySession).set(sessionId, prompt) }));

export const takeRefill = (sessionId: string): void =>
  useRefills.setState(({ bySession }) => ({
    bySession: new Map([...bySession].filter(([id]) => id !== sessionId)),
  }));

export const useRefill = (sessionId: string): Refill | undefined =>
  useRefills((state) => state.bySession.get(sessionId));

/** As Markdown has it, with room to go on below. */
export function asQuote(text: string): string {
  const lines = text.trim().split("\n");
  return `${lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n")}\n\n`;
}
