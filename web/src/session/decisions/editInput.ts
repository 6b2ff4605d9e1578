/** Changing what a tool is about to be given. A command is changed as text, everything else as JSON. Pure. */
import { asObject, asString, type Json } from "../../wire/json";

/** The one field that is what people mean when they want to change the input. */
export function editableField(input: Json): string | undefined {
  return ["command", "url"].find((name) => asString(input[name]) !== undefined);
}

export function editableText(input: Json, field: string | undefined): string {
  return field === undefined ? JSON.stringify(input, null, 2) : (asString(input[field]) ?? "");
}

/** The input that was written; nothing while it makes no sense. */
export function readEdited(input: Json, field: string | undefined, text: string): Json | undefined {
  if (field !== undefined) return text.trim() === "" ? undefined : { ...input, [field]: text };
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}
