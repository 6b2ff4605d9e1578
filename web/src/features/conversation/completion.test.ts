import { describe, expect, it } from "vitest";
import { complete, tokenAt } from "./completion";

describe("what is completed", () => {
  it.each([
    ["/com|", "command", "com"],
    ["/|", "command", ""],
    ["look at @src/m| please", "file", "src/m"],
    ["@|", "file", ""],
  ])("%s", (marked, kind, query) => {
    const caret = marked.indexOf("|");
    expect(tokenAt(marked.replace("|", ""), caret)).toMatchObject({ kind, query });
  });

  it.each(["a /com|", "mail@example|", "/commit now|", "plain|", "@file done|"])(
    "nothing in %s",
    (marked) => {
      expect(tokenAt(marked.replace("|", ""), marked.indexOf("|"))).toBeUndefined();
    },
  );

  it("replaces what was typed and goes on behind it", () => {
    const token = tokenAt("see @sr it", 7);
    expect(token && complete("see @sr it", token, "src/main.rs")).toEqual({
      text: "see @src/main.rs it",
      caret: 17,
    });
    const folder = tokenAt("@s", 2);
    expect(folder && complete("@s", folder, "src/")).toEqual({ text: "@src/", caret: 5 });
  });
});
