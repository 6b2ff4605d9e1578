/** What is being completed in a prompt: a command at its beginning, or a file after an @. Pure. */

export interface Token {
  readonly kind: "command" | "file";
  /** What has been typed of it, without the sign. */
  readonly query: string;
  readonly start: number;
  readonly end: number;
}

export function tokenAt(text: string, caret: number): Token | undefined {
  const before = text.slice(0, caret);
  const command = /^\/([^\s]*)$/.exec(before);
  if (command) return { kind: "command", query: command[1] ?? "", start: 0, end: caret };
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  if (!file) return undefined;
  const query = file[1] ?? "";
  return { kind: "file", query, start: caret - query.length - 1, end: caret };
}

/** The text with the token replaced, and where the caret belongs. */
export function complete(text: string, token: Token, value: string): { text: string; caret: number } {
  const sign = token.kind === "command" ? "/" : "@";
  const rest = text.slice(token.end).replace(/^ /, "");
  const head = `${text.slice(0, token.start)}${sign}${value}`;
  // A folder is not the end of a path.
  const space = token.kind === "file" && value.endsWith("/") ? "" : " ";
  return { text: `${head}${space}${rest}`, caret: head.length + space.length };
}
