import { expect, it } from "vitest";
import { describeSuggestions } from "./rules";

it("says what 'always allow' would add", () => {
  expect(
    describeSuggestions([
      {
        type: "addRules",
        behavior: "allow",
        destination: "localSettings",
        rules: [{ toolName: "Bash", ruleContent: "git *" }, { toolName: "Read" }],
      },
      { type: "setMode", mode: "acceptEdits", destination: "session" },
      { type: "addDirectories", directories: ["/srv/data"], destination: "session" },
      { type: "somethingNew" },
    ]),
  ).toEqual([
    { kind: "rule", text: "Bash(git *)", destination: "localSettings" },
    { kind: "rule", text: "Read", destination: "localSettings" },
    { kind: "mode", text: "acceptEdits", destination: "session" },
    { kind: "folder", text: "/srv/data", destination: "session" },
    { kind: "other", text: '{"type":"somethingNew"}', destination: undefined },
  ]);
  expect(describeSuggestions(undefined)).toEqual([]);
});
