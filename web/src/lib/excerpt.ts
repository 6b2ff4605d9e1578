/** The beginning of a long text. Pure. */

/**
 * At most so many lines and characters, cut where a word ends; undefined if the text is not much longer than that, because
 * folding the little rest would save nobody anything.
 */
export function excerpt(text: string, lines: number, characters: number): string | undefined {
  const byLines = text.split("\n", lines).join("\n");
  const cut = byLines.length > characters ? byLines.slice(0, characters) : byLines;
  if (text.length - cut.length < characters / 8 && text.split("\n", lines + 3).length < lines + 3)
    return undefined;
  // Not in the middle of a word, nor of a character of two halves.
  const end = cut.length < byLines.length ? cut.search(/\s\S{0,40}$/) : -1;
  return (end > 0 ? cut.slice(0, end) : cut.replace(/[\uD800-\uDBFF]$/, "")).trimEnd();
}
