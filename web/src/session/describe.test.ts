import { describe, expect, it } from "vitest";
import type { TFunction } from "i18next";
import { familyOf, readableName, summarize, toolName } from "./describe";

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
    expect(readableName("mcp__github__create_issue")).toBe("github: create issue");
    expect(readableName("mcp__my-desk__open--it")).toBe("my desk: open it");
    expect(readableName("mcp__odd")).toBe("mcp__odd");
    expect(readableName("BrandNewTool")).toBe("Brand new tool");
    expect(readableName("Bash")).toBe("Bash");
    const t = ((key: string) => key) as unknown as TFunction;
    expect(toolName(t, "TodoWrite")).toBe("tool.name.TodoWrite");
    expect(toolName(t, "mcp__a__b_c")).toBe("a: b c");
    expect(familyOf("mcp__github__x")).toBe("mcp");
    expect(familyOf("BrandNew")).toBe("other");
  });
});
