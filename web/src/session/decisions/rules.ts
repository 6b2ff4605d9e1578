/** The rules that 'always allow' would add, in words that can be checked before saying yes. */
import { asArray, asObjects, asString, type Json } from "../../wire/json";

export interface SuggestedRule {
  readonly kind: "rule" | "mode" | "folder" | "other";
  readonly text: string;
  /** Where it would be kept: `session`, `localSettings`, `projectSettings`, `userSettings`. */
  readonly destination: string | undefined;
}

export function describeSuggestions(suggestions: readonly unknown[] | undefined): SuggestedRule[] {
  return asObjects(suggestions).flatMap(describe);
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
