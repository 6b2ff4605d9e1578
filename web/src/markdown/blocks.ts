/**
 * A growing text, cut into Markdown blocks. Words that are added change the last block, or at most the one before it
 * (a line below may turn a paragraph into a heading, or go on with a list), so everything before those is finished: it
 * is neither cut nor drawn again, however long the text becomes.
 */

export interface Blocks {
  readonly text: string;
  readonly finished: readonly string[];
  /** The rest: the last blocks, which may still change. */
  readonly tail: string;
}

export const noBlocks: Blocks = { text: "", finished: [], tail: "" };

/** How many blocks with content may still change. */
const OPEN_BLOCKS = 2;

export function cutBlocks(before: Blocks, text: string, cut: (text: string) => readonly string[]): Blocks {
  const grown = text.startsWith(before.text);
  const finished = grown ? before.finished : [];
  const start = finished.reduce((length, block) => length + block.length, 0);
  const rest = text.slice(start);
  const cutRest = cut(rest);
  const closed = cutRest.slice(0, closedCount(cutRest));
  const length = closed.reduce((sum, block) => sum + block.length, 0);
  // A cut that is not faithful to the text can't be continued; then all of it stays open.
  if (closed.length === 0 || rest.slice(0, length) !== closed.join("")) return { text, finished, tail: rest };
  return { text, finished: [...finished, ...closed], tail: rest.slice(length) };
}

function closedCount(tail: readonly string[]): number {
  let open = 0;
  let at = tail.length;
  while (at > 0 && open < OPEN_BLOCKS) {
    at -= 1;
    if (tail[at]?.trim() !== "") open += 1;
  }
  return at;
}
