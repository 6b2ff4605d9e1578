/** The tags with one more, as the server will have them: without the sign before it, each once whatever its case. Pure. */
export function withTag(tags: readonly string[], typed: string): string[] {
  const tag = typed.trim().replace(/^#\s*/, "").replace(/\s+/g, " ");
  const known = tags.some((each) => each.toLowerCase() === tag.toLowerCase());
  return tag === "" || known ? [...tags] : [...tags, tag];
}
