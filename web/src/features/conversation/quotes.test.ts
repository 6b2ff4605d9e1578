import { expect, it } from "vitest";
import { asQuote } from "./quotes";

it("quotes every line, and leaves room for what is said about it", () => {
  expect(asQuote(" one\n\ntwo ")).toBe("> one\n>\n> two\n\n");
});
