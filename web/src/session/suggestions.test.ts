import { describe, expect, it } from "vitest";
import { commandSuggestions } from "./suggestions";

describe("commands", () => {
  it("are those that the agent describes, without its makers' own", () => {
    const told = {
      commands: [
        { name: "compact", argumentHint: "[focus]", description: "Make room" },
        { name: "__remote-workflow" },
        { name: "heapdump" },
        { description: "nameless" },
      ],
    };
    expect(commandSuggestions(told, undefined)).toEqual([
      { value: "compact", label: "/compact [focus]", hint: "Make room" },
    ]);
  });

  it("are those that its turn began with, until it has described any", () => {
    const init = { slash_commands: ["clear", "heapdump", "__x", "init"] } as never;
    expect(commandSuggestions(undefined, init).map(({ label }) => label)).toEqual(["/clear", "/init"]);
  });
});
