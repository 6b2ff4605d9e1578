import { describe, expect, it } from "vitest";
import { looksLikeFormula } from "./math";

describe("formulas", () => {
  it.each(["e^{i\\pi}+1=0", "x_1", "n", "\\alpha", "a < b"])("%s is one", (text) => {
    expect(looksLikeFormula(text)).toBe(true);
  });

  it.each(["5 and ", "10 a month, or ", "HOME/bin:"])("%s is none", (text) => {
    expect(looksLikeFormula(text)).toBe(false);
  });
});
