/** The rules that 'always allow' would add, in words that can be checked before saying yes. */
import { asArray, asObjects, asString, type Json } from "../../wire/json";

export interface SuggestedRule {
  readonly kind: "rule" | "mode" | "folder" | "other";
  readonly text: string;
  /** Where it would be kept: `session`, `localSettings`, `projectSettings`, `userSettings`. */
  readonly destination: string | undefined;
}

/** One suggestion: it is kept whole or not at all. */
export interface Suggestion {
  readonly raw: Json;
  readonly rules: readonly SuggestedRule[];
  /** It allows no more than calls like this one; a mode or a folder allows others, too. */
  readonly isRule: boolean;
}

export function suggestionsOf(suggestions: readonly unknown[] | undefined): Suggestion[] {
  return asObjects(suggestions).map((raw) => {
    const rules = describe(raw);
    return { raw, rules, isRule: rules.every((rule) => rule.kind === "rule") };
  });
}

function describe(suggestion: Json): SuggestedRule[] {
  const destination = asString(suggestion.destination);
  if (suggestion.type === "addRules" || suggestion.type === "replaceRules") {
    return asObjects(suggestion.rules).map((rule) => {
      const name = asString(rule.toolName) ?? "";
      const content = asString(rule.ruleContent);
      return { kind: "rule", text: content ? `${name}(${content})` : name, destination };
    });
  }
  if (suggestion.type === "setMode")
    return [{ kind: "mode", text: asString(suggestion.mode) ?? "", destination }];
  if (suggestion.type === "addDirectories") {
    return asArray(suggestion.directories).flatMap((folder) => {
      const text = asString(folder);
      return text ? [{ kind: "folder" as const, text, destination }] : [];
    });
  }
  return [{ kind: "other", text: JSON.stringify(suggestion), destination }];
}
