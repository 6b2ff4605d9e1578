import { describe, expect, it } from "vitest";
import { parseTools, toggleTool } from "./tools";

describe("granted tools", () => {
  it("are separated by commas that are not inside a rule", () => {
    expect(parseTools(" Read, Bash(git log, git diff:*) ,Read,,Edit")).toEqual([
      "Read",
      "Bash(git log, git diff:*)",
      "Edit",
    ]);
    expect(parseTools(undefined)).toEqual([]);
  });

  it("are switched one by one", () => {
    expect(toggleTool(["Read"], "Bash")).toEqual(["Read", "Bash"]);
    expect(toggleTool(["Read", "Bash"], "Read")).toEqual(["Bash"]);
  });
});
