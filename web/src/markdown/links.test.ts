import { expect, it } from "vitest";
import { languageOf } from "./language";
import { safeLink } from "./links";

it.each([
  ["https://example.com/a", "https://example.com/a"],
  ["http://example.com", "http://example.com/"],
  ["mailto:a@example.com", "mailto:a@example.com"],
  ["javascript:alert(1)", undefined],
  [" javascript:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["file:///etc/passwd", undefined],
  ["//example.com", undefined],
  ["/api/system", undefined],
  ["#/s/x", undefined],
  ["", undefined],
  [undefined, undefined],
])("%s leads to %s", (href, address) => {
  expect(safeLink(href)).toBe(address);
});

it("tells the language of a file by its name", () => {
  expect(["/p/a.rs", "Makefile", ".env", "README"].map(languageOf)).toEqual([
    "rs",
    "makefile",
    undefined,
    undefined,
  ]);
});
