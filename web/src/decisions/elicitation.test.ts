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

  it("gives back what was filled in, with its types", () => {
    expect(contentOf(fields, { name: " Ada ", age: "36", size: "l" })).toEqual({
      name: "Ada",
      age: 36,
      size: "l",
      agree: true,
    });
  });

  it.each([
    ["a missing field", { name: "Ada" }],
    ["a word for a number", { name: "Ada", size: "s", age: "old" }],
    ["half of an integer", { name: "Ada", size: "s", age: "1.5" }],
    ["too little", { name: "Ada", size: "s", age: "-1" }],
  ])("does not take %s", (_, values) => {
    expect(contentOf(fields, values)).toBeUndefined();
  });
});
