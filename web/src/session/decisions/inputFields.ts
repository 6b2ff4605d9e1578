/**
 * The input of a tool as a person reads it before a decision: every field, whole, with nothing invisible in it. The terminal does
 * the same (`crates/message/src/display.rs`); both pass the cases of `crates/message/fixtures/display.json`. Pure.
 */

export interface InputField {
  /** Where it is: `command`, `edits[0].old_string`. Empty for an input that is not an object. */
  readonly name: string;
  readonly text: string;
}

/** All fields of an input, those of nested objects and lists, too, sorted by name. */
export function inputFields(input: unknown): InputField[] {
  const fields: InputField[] = [];
  collect("", input, fields);
  return fields;
}

function collect(name: string, value: unknown, fields: InputField[]): void {
  if (Array.isArray(value) && value.length > 0) {
    value.forEach((entry, index) => collect(`${name}[${index}]`, entry, fields));
    return;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    for (const [key, entry] of entries)
      collect(`${name}${name === "" ? "" : "."}${visible(key)}`, entry, fields);
    if (entries.length > 0) return;
  }
  fields.push({ name, text: typeof value === "string" ? visible(value) : JSON.stringify(value) });
}

/**
 * Characters that a browser obeys or hides instead of showing them: control characters except line breaks and tabs, fillers,
 * characters without a width, marks and overrides of writing direction, tags.
 */
const INVISIBLE =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** The text with its invisible characters written out, as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
