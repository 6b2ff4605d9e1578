/** A form that an MCP server asks the user to fill in: from its schema to fields, and from what was typed to the answer. Pure. */
import { asArray, asNumber, asObject, asObjects, asString, type Json } from "../../wire/json";

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly description: string | undefined;
  readonly kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices";
  readonly options: readonly Option[];
  /** What the text is to be: an address, a date. The browser helps to write it. */
  readonly format: string | undefined;
  readonly required: boolean;
  readonly initial: Value;
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

export type Value = string | boolean | readonly string[];
export type Values = Readonly<Record<string, Value>>;

/** In the order in which the server's author wrote them: it is the order to fill them in. */
export function parseFields(schema: unknown): Field[] {
  const object = asObject(schema);
  const required = asArray(object?.required);
  return Object.entries(asObject(object?.properties) ?? {}).map(([name, given]) =>
    parseField(name, asObject(given) ?? {}, required.includes(name)),
  );
}

function parseField(name: string, property: Json, required: boolean): Field {
  const several = property.type === "array";
  const options = optionsOf(several ? (asObject(property.items) ?? {}) : property);
  const kind = several ? "choices" : kindOf(property, options.length > 0);
  return {
    name,
    label: asString(property.title) ?? name,
    description: asString(property.description),
    kind,
    options,
    format: asString(property.format),
    required,
    initial: initialOf(kind, property.default),
    minimum: asNumber(several ? property.minItems : property.minimum),
    maximum: asNumber(several ? property.maxItems : property.maximum),
  };
}

/** Bare values, values with names beside them, or values that have titles. */
function optionsOf(property: Json): Option[] {
  const titled = [...asObjects(property.oneOf), ...asObjects(property.anyOf)].flatMap((each) => {
    const value = asString(each.const);
    return value === undefined ? [] : [{ value, label: asString(each.title) ?? value }];
  });
  const names = asArray(property.enumNames);
  const bare = asArray(property.enum).flatMap((each, index) => {
    const value = asString(each);
    return value === undefined ? [] : [{ value, label: asString(names[index]) ?? value }];
  });
  return [...titled, ...bare];
}

function initialOf(kind: Field["kind"], given: unknown): Value {
  if (kind === "boolean") return given === true;
  if (kind === "choices") return asArray(given).flatMap((each) => asString(each) ?? []);
  return given === undefined ? "" : String(given);
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
    if (typeof value !== "string") {
      const fewest = field.minimum ?? (field.required ? 1 : 0);
      if (value.length < fewest || value.length > (field.maximum ?? Infinity)) return undefined;
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

/** What a server asks, and where it sends the user if it asks for a visit. */
export function elicitationOf(input: Json): { server: string; message?: string; url?: string } {
  return { server: asString(input.server) ?? "", message: asString(input.message), url: asString(input.url) };
}
