/** The query of an address: beginning with a question mark, or empty. */
export function query(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== "") given.set(name, String(value));
  const text = given.toString();
  return text && `?${text}`;
}
