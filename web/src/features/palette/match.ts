/** Which commands fit what was typed. Pure. */

export interface Matchable {
  readonly label: string;
  /** Other words by which it may be looked for. */
  readonly words?: string;
}

/** All words must occur; those that begin the label come first, the given order decides the rest. */
export function matching<T extends Matchable>(commands: readonly T[], typed: string): T[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...commands];
  const ranked = commands.flatMap((command, index) => {
    const label = command.label.toLowerCase();
    const text = `${label} ${command.words?.toLowerCase() ?? ""}`;
    if (!words.every((word) => text.includes(word))) return [];
    const first = words[0] ?? "";
    const rank = label.startsWith(first) ? 0 : label.includes(first) ? 1 : 2;
    return [{ command, rank, index }];
  });
  return ranked.toSorted((a, b) => a.rank - b.rank || a.index - b.index).map(({ command }) => command);
}
