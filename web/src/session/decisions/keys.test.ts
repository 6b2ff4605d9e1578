import { describe, expect, it } from "vitest";
import { decisionKey, type Focus, type Key } from "./keys";

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
const press = (key: string, code: string, more: Partial<Key> = {}): Key => ({ key, code, ...none, ...more });

describe("a key while something waits", () => {
  it.each<[string, Key, Focus, ReturnType<typeof decisionKey>]>([
    ["a letter on the request", press("y", "KeyY"), "free", "allow"],
    ["with Caps Lock", press("Y", "KeyY"), "free", "allow"],
    ["with a Russian layout", press("ф", "KeyA"), "free", "always"],
    ["on AZERTY, by what it writes", press("a", "KeyQ"), "free", "always"],
    ["a letter in the empty field is text", press("y", "KeyY"), "empty", undefined],
    ["Ctrl+Enter in the empty field", press("Enter", "Enter", { ctrlKey: true }), "empty", "allow"],
    ["Cmd+Enter", press("Enter", "Enter", { metaKey: true }), "empty", "allow"],
    ["Enter alone", press("Enter", "Enter"), "free", undefined],
    ["Alt+A in the empty field", press("å", "KeyA", { altKey: true }), "empty", "always"],
    ["Alt+E", press("e", "KeyE", { altKey: true }), "empty", "edit"],
    ["Alt+D", press("d", "KeyD", { altKey: true }), "empty", "deny"],
    ["Ctrl+A selects", press("a", "KeyA", { ctrlKey: true }), "free", undefined],
    ["a digit", press("2", "Digit2"), "free", 2],
    ["a digit in the field is text", press("2", "Digit2"), "empty", undefined],
    ["j", press("j", "KeyJ"), "free", "next"],
    [
      "Ctrl+Enter in the text of the answer",
      press("Enter", "Enter", { ctrlKey: true }),
      "answering",
      "allow",
    ],
    ["a letter in the text of the answer", press("y", "KeyY"), "answering", undefined],
    ["Alt+D in the text of the answer", press("d", "KeyD", { altKey: true }), "answering", undefined],
    ["anything while typing", press("Enter", "Enter", { ctrlKey: true }), "typing", undefined],
  ])("%s", (_, key, focus, meaning) => {
    expect(decisionKey(key, focus)).toBe(meaning);
  });
});
