import { describe, expect, it } from "vitest";
import { excerpt } from "./excerpt";

describe("excerpt", () => {
  it("leaves alone what is hardly longer", () => {
    expect(excerpt("short", 12, 900)).toBeUndefined();
    expect(excerpt("a\n".repeat(13), 12, 900)).toBeUndefined();
    expect(excerpt("x".repeat(950), 12, 900)).toBeUndefined();
  });

  it("cuts after so many lines", () => {
    expect(excerpt("a\nb\n".repeat(20), 3, 900)).toBe("a\nb\na");
  });

  it("cuts one endless line where a word ends, and Chinese anywhere", () => {
    expect(excerpt("of many words, ".repeat(600), 12, 100)).toBe(
      "of many words, ".repeat(6).trimEnd() + " of many",
    );
    expect(excerpt("字".repeat(2000), 12, 900)).toBe("字".repeat(900));
  });

  it("keeps a character whole", () => {
    expect(excerpt("😀".repeat(1000), 12, 901)).toBe("😀".repeat(450));
  });
});
