/** Going back through earlier prompts with the arrow keys, as a shell does. Pure. */

export interface Recall {
  /** How far back; 0 is what is being typed. */
  readonly depth: number;
  /** What was being typed when it began. */
  readonly typed: string;
}

export const notRecalling: Recall = { depth: 0, typed: "" };

/** `prompts` newest first. Nothing when there is no further to go. */
export function step(
  recall: Recall,
  prompts: readonly string[],
  text: string,
  direction: "back" | "forth",
): { recall: Recall; text: string } | undefined {
  const depth = recall.depth + (direction === "back" ? 1 : -1);
  if (depth < 0 || depth > prompts.length) return undefined;
  const typed = recall.depth === 0 ? text : recall.typed;
  return { recall: { depth, typed }, text: depth === 0 ? typed : (prompts[depth - 1] ?? "") };
}
