import { describe, expect, it } from "vitest";
import { notRecalling, step } from "./recall";

describe("earlier prompts", () => {
  it("come one by one, and what was typed comes back", () => {
    const prompts = ["newest", "older"];
    const first = step(notRecalling, prompts, "", "back");
    expect(first?.text).toBe("newest");
    const second = first && step(first.recall, prompts, first.text, "back");
    expect(second?.text).toBe("older");
    expect(second && step(second.recall, prompts, second.text, "back")).toBeUndefined();
    const forth = second && step(second.recall, prompts, second.text, "forth");
    expect(forth?.text).toBe("newest");
    expect(forth && step(forth.recall, prompts, forth.text, "forth")?.text).toBe("");
  });

  it("do not go beyond the present", () => {
    expect(step(notRecalling, ["a"], "typing", "forth")).toBeUndefined();
  });
});
