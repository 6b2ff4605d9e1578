import { expect, it } from "vitest";
import { suggestionsOf } from "./rules";

it("says what 'always allow' would add", () => {
  expect(
    suggestionsOf([
      {
        type: "addRules",
        behavior: "allow",
        destination: "localSettings",
        rules: [{ toolName: "Bash", ruleContent: "git *" }, { toolName: "Read" }],
      },
      { type: "setMode", mode: "acceptEdits", destination: "session" },
      { type: "addDirectories", directories: ["/srv/data"], destination: "session" },
      { type: "somethingNew" },
    ]).map(({ rules, isRule }) => [isRule, ...rules]),
  ).toEqual([
    [
      true,
      { kind: "rule", text: "Bash(git *)", destination: "localSettings" },
      { kind: "rule", text: "Read", destination: "localSettings" },
    ],
    [false, { kind: "mode", text: "acceptEdits", destination: "session" }],
    [false, { kind: "folder", text: "/srv/data", destination: "session" }],
    [false, { kind: "other", text: '{"type":"somethingNew"}', destination: undefined }],
  ]);
  expect(suggestionsOf(undefined)).toEqual([]);
});
