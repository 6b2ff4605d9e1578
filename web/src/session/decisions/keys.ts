/** Which key means what while something waits for a decision. Pure. */

export interface Key {
  readonly key: string;
  /** The place of the key on the keyboard, whatever the layout writes there. */
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

/**
 * Where the focus is: on the request or on nothing (`free`), in a message field without text (`empty`), in a long text that belongs
 * to the answer (`answering`), or where the key is text (`typing`).
 */
export type Focus = "free" | "empty" | "answering" | "typing";

export type DecisionKey = "allow" | "always" | "edit" | "deny" | "next" | "previous" | number;

const letters: Record<string, DecisionKey> = {
  y: "allow",
  a: "always",
  e: "edit",
  n: "deny",
  j: "next",
  k: "previous",
};
const withAlt: Record<string, DecisionKey> = { KeyA: "always", KeyE: "edit", KeyD: "deny" };

export function decisionKey(key: Key, focus: Focus): DecisionKey | undefined {
  if (focus === "typing") return undefined;
  const command = key.ctrlKey || key.metaKey;
  if (key.key === "Enter") return command && !key.altKey && !key.shiftKey ? "allow" : undefined;
  if (command || focus === "answering") return undefined;
  // The key writes another character with Alt on some systems, so only its place counts.
  if (key.altKey) return key.shiftKey ? undefined : withAlt[key.code];
  if (focus === "empty") return undefined;
  if (/^[1-9]$/.test(key.key)) return Number(key.key);
  return letters[letterOf(key)];
}

/** The letter, whatever Caps Lock says; by its place where the layout has no Latin letters. */
function letterOf({ key, code }: Key): string {
  const letter = key.toLowerCase();
  return /^[a-z]$/.test(letter) ? letter : /^Key[A-Z]$/.test(code) ? code.slice(3).toLowerCase() : "";
}
