import { expect, test } from "vitest";
import { speaker } from "./speaker";

test("only what a person said is a person's", () => {
  expect(speaker({ role: "user" })).toBe("user");
  expect(speaker({ role: "assistant" })).toBe("assistant");
  expect(speaker({ role: "user", is_tool_result: true })).toBe("tool");
  expect(speaker({ role: "user", is_summary: true })).toBe("summary");
  expect(speaker({ role: "user", is_summary: true, agent_id: "a1" })).toBe("agent");
});
