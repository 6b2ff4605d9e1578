/** What the agent says about its context, as far as the picture needs it. */
import { asNumber, asObject, asObjects, asString } from "../wire/json";

export interface Context {
  readonly used: number;
  readonly size: number;
  /** What fills it, largest first. */
  readonly parts: readonly { readonly name: string; readonly tokens: number }[];
}

/** Parts that are room, not content. */
const ROOM = /free|buffer|reserved/i;

export function parseContext(data: unknown): Context | undefined {
  const usage = asObject(data);
  const size = asNumber(usage?.rawMaxTokens) ?? asNumber(usage?.maxTokens);
  const parts = asObjects(usage?.categories).flatMap((category) => {
    const name = asString(category.name);
    const tokens = asNumber(category.tokens);
    return name && tokens && !ROOM.test(name) && category.isDeferred !== true ? [{ name, tokens }] : [];
  });
  const used = asNumber(usage?.totalTokens) ?? parts.reduce((sum, part) => sum + part.tokens, 0);
  if (!size || size <= 0) return undefined;
  return { used, size, parts: parts.toSorted((a, b) => b.tokens - a.tokens) };
}
