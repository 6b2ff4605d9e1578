import { describe, expect, it } from "vitest";
import { contentOf, parseFields } from "./elicitation";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name" },
    age: { type: "integer", minimum: 0 },
    size: { type: "string", enum: ["s", "l"], enumNames: ["Small", "Large"] },
    agree: { type: "boolean", default: true },
  },
  required: ["name", "size"],
};

describe("a form of an MCP server", () => {
  const fields = parseFields(schema);

  it("has a field for each property", () => {
    expect(fields.map(({ name, label, kind, required }) => [name, label, kind, required])).toEqual([
      ["name", "Your name", "text", true],
      ["age", "age", "integer", false],
      ["size", "size", "choice", true],
      ["agree", "agree", "boolean", false],
    ]);
    expect(fields[2]?.options).toEqual([
      { value: "s", label: "Small" },
      { value: "l", label: "Large" },
    ]);
    expect(parseFields(undefined)).toEqual([]);
  });

  it("offers values with titles, one or several of them", () => {
    const titled = [
      { const: "a", title: "Alpha" },
      { const: "b", title: "Beta" },
    ];
    const [one, several] = parseFields({
      properties: {
        one: { type: "string", oneOf: titled },
        several: { type: "array", items: { anyOf: titled }, minItems: 1, default: ["b"] },
      },
    });
    expect(one).toMatchObject({ kind: "choice", options: [{ value: "a", label: "Alpha" }, { value: "b" }] });
    expect(several).toMatchObject({ kind: "choices", initial: ["b"] });
    const form = [one, several].filter((field) => field !== undefined);
    expect(contentOf(form, { one: "a" })).toEqual({ one: "a", several: ["b"] });
    expect(contentOf(form, { one: "a", several: [] })).toBeUndefined();
  });

  it("gives back what was filled in, with its types", () => {
    expect(contentOf(fields, { name: " Sam ", age: "36", size: "l" })).toEqual({
      name: "Sam",
      age: 36,
      size: "l",
      agree: true,
    });
  });

  it.each([
    ["a missing field", { name: "Sam" }],
    ["a word for a number", { name: "Sam", size: "s", age: "old" }],
    ["half of an integer", { name: "Sam", size: "s", age: "1.5" }],
    ["too little", { name: "Sam", size: "s", age: "-1" }],
  ])("does not take %s", (_, values) => {
    expect(contentOf(fields, values)).toBeUndefined();
  });
});
