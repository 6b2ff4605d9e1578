import { describe, expect, it } from "vitest";
import { promptKey } from "./promptKeys";

const none = { ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, isComposing: false };

describe("promptKey", () => {
  it.each([
    ["Enter", {}, "send"],
    ["Enter", { ctrlKey: true }, "newline"],
    ["Enter", { metaKey: true }, "newline"],
    ["Enter", { shiftKey: true }, undefined],
    ["Enter", { isComposing: true }, undefined],
    ["Escape", {}, "stop"],
    ["Escape", { isComposing: true }, undefined],
    ["a", {}, undefined],
  ] as const)("%s with %o means %s", (key, modifiers, meaning) => {
    expect(promptKey({ ...none, ...modifiers, key })).toBe(meaning);
  });
});
