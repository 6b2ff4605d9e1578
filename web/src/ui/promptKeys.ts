/** What a key means in a prompt field. Pure: the field does it. */

export type PromptKey = "send" | "newline" | "stop" | undefined;

interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  /** An input method is composing: its Enter chooses a word. */
  readonly isComposing: boolean;
}

export function promptKey(press: KeyPress): PromptKey {
  if (press.isComposing) return undefined;
  if (press.key === "Escape") return "stop";
  if (press.key !== "Enter") return undefined;
  // Shift+Enter breaks the line by itself in every browser; the others have to be helped.
  if (press.shiftKey) return undefined;
  return press.ctrlKey || press.metaKey || press.altKey ? "newline" : "send";
}
