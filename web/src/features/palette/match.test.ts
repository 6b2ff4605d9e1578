import { describe, expect, it } from "vitest";
import { matching } from "./match";

const commands = [
  { label: "Open history", words: "past" },
  { label: "History of prompts" },
  { label: "New session", words: "start" },
];

describe("the command palette", () => {
  it.each([
    ["", ["Open history", "History of prompts", "New session"]],
    ["hist", ["History of prompts", "Open history"]],
    ["START", ["New session"]],
    ["open past", ["Open history"]],
    ["nothing", []],
  ])("finds for %s", (typed, labels) => {
    expect(matching(commands, typed).map((command) => command.label)).toEqual(labels);
  });
});
