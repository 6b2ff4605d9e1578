/** A form that an MCP server asks the user to fill in: from its schema to fields, and from what was typed to the answer. Pure. */
import { asArray, asNumber, asObject, asString, type Json } from "../wire/json";

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly description: string | undefined;
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice";
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly required: boolean;
  readonly initial: string | boolean;
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
}

export type Values = Readonly<Record<string, string | boolean>>;

export function parseFields(schema: unknown): Field[] {
  const object = asObject(schema);
  const required = new Set(asArray(object?.required));
  return Object.entries(asObject(object?.properties) ?? {}).map(([name, given]) => {
    const property = asObject(given) ?? {};
    const names = asArray(property.enumNames);
    const options = asArray(property.enum).flatMap((value, index) => {
      const text = asString(value);
      return text === undefined ? [] : [{ value: text, label: asString(names[index]) ?? text }];
    });
    const kind = kindOf(property, options.length > 0);
    const initial = property.default;
    return {
      name,
      label: asString(property.title) ?? name,
      description: asString(property.description),
      kind,
      options,
      required: required.has(name),
      initial: kind === "boolean" ? initial === true : initial === undefined ? "" : String(initial),
      minimum: asNumber(property.minimum),
      maximum: asNumber(property.maximum),
    };
  });
}

function kindOf(property: Json, chosen: boolean): Field["kind"] {
  if (chosen) return "choice";
  return property.type === "boolean" || property.type === "number" || property.type === "integer"
    ? property.type
    : "text";
}

/** What goes back to the server; nothing while a field is missing or wrong. */
export function contentOf(fields: readonly Field[], values: Values): Json | undefined {
  const content: Record<string, unknown> = {};
  for (const field of fields) {
    const value = values[field.name] ?? field.initial;
    if (typeof value === "boolean") {
      content[field.name] = value;
      continue;
    }
    const text = value.trim();
    if (text === "") {
      if (field.required) return undefined;
      continue;
    }
    if (field.kind === "number" || field.kind === "integer") {
      const number = Number(text);
      if (!Number.isFinite(number) || (field.kind === "integer" && !Number.isInteger(number)))
        return undefined;
      if (field.minimum !== undefined && number < field.minimum) return undefined;
      if (field.maximum !== undefined && number > field.maximum) return undefined;
      content[field.name] = number;
    } else content[field.name] = text;
  }
  return content;
}
