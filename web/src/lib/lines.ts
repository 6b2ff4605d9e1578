/** What was written one to a line or with commas between, each once. */
export function lines(text: string): string[] {
  const entries = text.split(/[\n,]/u).map((entry) => entry.trim());
  return [...new Set(entries.filter((entry) => entry !== ""))];
}
