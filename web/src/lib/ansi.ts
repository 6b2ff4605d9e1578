/** Terminal output as text with colours. Everything but colours and weights is taken out: output can't draw elsewhere. */

export interface AnsiSpan {
  readonly text: string;
  readonly color: AnsiColor | undefined;
  readonly bold: boolean;
  readonly dim: boolean;
}

export const ansiColors = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
export type AnsiColor = (typeof ansiColors)[number];

// Escape sequences: CSI (captured where it sets graphics), OSC to its terminator, and two-character ones.
const SEQUENCE = new RegExp(
  // oxlint-disable-next-line no-control-regex -- the control character is what is looked for
  "\\u001b\\[([0-9;]*)m|\\u001b\\[[0-?]*[ -/]*[@-~]|\\u001b\\][^\\u0007\\u001b]*(?:\\u0007|\\u001b\\\\)|\\u001b[@-_]",
  "g",
);

export function parseAnsi(output: string): AnsiSpan[] {
  const spans: AnsiSpan[] = [];
  let style: Omit<AnsiSpan, "text"> = { color: undefined, bold: false, dim: false };
  let end = 0;
  for (const match of output.matchAll(SEQUENCE)) {
    push(spans, output.slice(end, match.index), style);
    end = match.index + match[0].length;
    if (match[1] !== undefined) style = restyle(style, match[1]);
  }
  push(spans, output.slice(end), style);
  return spans;
}

export function stripAnsi(output: string): string {
  return output.replace(SEQUENCE, "");
}

function push(spans: AnsiSpan[], text: string, style: Omit<AnsiSpan, "text">): void {
  if (text !== "") spans.push({ text, ...style });
}

function restyle(style: Omit<AnsiSpan, "text">, codes: string): Omit<AnsiSpan, "text"> {
  let next = style;
  const numbers = codes === "" ? [0] : codes.split(";").map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) next = { color: undefined, bold: false, dim: false };
    else if (code === 1) next = { ...next, bold: true };
    else if (code === 2) next = { ...next, dim: true };
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 39) next = { ...next, color: undefined };
    else if (code >= 30 && code <= 37) next = { ...next, color: ansiColors[code - 30] };
    else if (code >= 90 && code <= 97) next = { ...next, color: ansiColors[code - 90] };
    // An extended colour brings its own numbers, which are not codes.
    else if (code === 38 || code === 48) at += numbers[at + 1] === 2 ? 4 : 2;
  }
  return next;
}
