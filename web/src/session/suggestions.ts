/** What an agent offers for completion: its commands, and files to mention. Pure. */
import type { Init } from "../gen/messages";
import { asArray, asObject, asObjects, asString } from "../wire/json";

export interface Suggestion {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

/** Commands that only the makers of the agent have a use for. */
const internal = (name: string): boolean => name.startsWith("__") || name === "heapdump";

/** `told` is the agent's answer; until it has given one, the names that its turn began with have to do. */
export function commandSuggestions(told: unknown, init: Init | undefined): Suggestion[] {
  const described = asObjects(asObject(told)?.commands ?? told).flatMap((command): Suggestion[] => {
    const name = asString(command.name);
    if (!name || internal(name)) return [];
    const hint = asString(command.argumentHint);
    return [
      { value: name, label: hint ? `/${name} ${hint}` : `/${name}`, hint: asString(command.description) },
    ];
  });
  if (described.length > 0) return described;
  return asArray(init?.slash_commands).flatMap((each): Suggestion[] => {
    const name = asString(each);
    return name && !internal(name) ? [{ value: name, label: `/${name}` }] : [];
  });
}

export function fileSuggestions(told: unknown): Suggestion[] {
  return asObjects(asObject(told)?.suggestions).flatMap((each): Suggestion[] => {
    const path = asString(each.path);
    return path ? [{ value: path, label: path }] : [];
  });
}
