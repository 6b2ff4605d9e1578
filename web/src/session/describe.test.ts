import { describe, expect, it } from "vitest";
import { displayName, familyOf, summarize } from "./describe";

describe("a tool call in one line", () => {
  it.each([
    ["Bash", { command: "ls -l\nrm x", description: "List" }, "List"],
    ["Read", { file_path: "/p/src/a.rs" }, "src/a.rs"],
    ["Grep", { pattern: "todo", path: "/p" }, "todo"],
    ["Task", { description: "Look around", prompt: "long" }, "Look around"],
    ["AskUserQuestion", { questions: [{ question: "Which?" }] }, "Which?"],
    ["mcp__x__y", { anything: 1 }, ""],
  ])("%s", (name, input, summary) => {
    expect(summarize(name, input, "/p")).toBe(summary);
  });

  it("names the tools of servers readably, and knows a family for every tool", () => {
    expect(displayName("mcp__github__create__issue")).toBe("github: create__issue");
    expect(displayName("Bash")).toBe("Bash");
    expect(familyOf("mcp__github__x")).toBe("mcp");
    expect(familyOf("BrandNew")).toBe("other");
  });
});
