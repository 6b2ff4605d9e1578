import { describe, expect, it } from "vitest";
import { parseAnsi, stripAnsi } from "./ansi";

const esc = "\u001b";

describe("parseAnsi", () => {
  it("keeps colours and weights", () => {
    expect(parseAnsi(`a${esc}[1;31mred${esc}[0m b`)).toEqual([
      { text: "a", color: undefined, bold: false, dim: false },
      { text: "red", color: "red", bold: true, dim: false },
      { text: " b", color: undefined, bold: false, dim: false },
    ]);
  });

  it("does not take the numbers of an extended colour for codes", () => {
    expect(parseAnsi(`${esc}[38;5;31mx${esc}[38;2;1;31;32my`).map((span) => span.color)).toEqual([
      undefined,
      undefined,
    ]);
  });

  it.each([
    ["cursor movement", `a${esc}[2Jb`],
    ["a window title", `a${esc}]0;title\u0007b`],
    ["a link", `a${esc}]8;;https://example.com${esc}\\b`],
    ["a two-character sequence", `a${esc}Mb`],
  ])("drops %s", (_, output) => {
    expect(
      parseAnsi(output)
        .map((span) => span.text)
        .join(""),
    ).toBe("ab");
    expect(stripAnsi(output)).toBe("ab");
  });
});
