import { describe, expect, it } from "vitest";
import { editableField, editableText, readEdited } from "./editInput";

describe("changing an input before allowing it", () => {
  it("changes a command as text and keeps the rest", () => {
    const input = { command: "rm -rf x", description: "Remove" };
    const field = editableField(input);
    expect(editableText(input, field)).toBe("rm -rf x");
    expect(readEdited(input, field, "rm x")).toEqual({ command: "rm x", description: "Remove" });
    expect(readEdited(input, field, "  ")).toBeUndefined();
  });

  it("changes anything else as JSON, and takes no nonsense", () => {
    const input = { a: 1 };
    expect(editableField(input)).toBeUndefined();
    expect(editableText(input, undefined)).toBe('{\n  "a": 1\n}');
    expect(readEdited(input, undefined, '{"a": 2}')).toEqual({ a: 2 });
    expect(readEdited(input, undefined, "[1]")).toBeUndefined();
    expect(readEdited(input, undefined, "{")).toBeUndefined();
  });
});
