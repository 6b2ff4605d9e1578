import { expect, it } from "vitest";
import cases from "../../../../crates/message/fixtures/display.json";
import { inputFields } from "./inputFields";

it.each(cases)("$name", ({ input, fields }) => {
  expect(inputFields(input).map(({ name, text }) => [name, text])).toEqual(fields);
});
