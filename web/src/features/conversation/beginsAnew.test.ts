import { describe, expect, it } from "vitest";
import type { Item } from "../../session/items";
import { beginsAnew } from "./beginsAnew";

const prompt = (seq: number, parent?: string): Item => ({
  kind: "prompt",
  key: `p${seq}`,
  seqs: [seq],
  text: "do it",
  parent,
});

describe("a cleared view", () => {
  it("stands for a new session", () => {
    expect(beginsAnew(4, "completed", [prompt(1)])).toBe(true);
    expect(beginsAnew(4, "error", [])).toBe(true);
  });

  it("goes on with the session whose work is still running", () => {
    expect(beginsAnew(4, "running", [prompt(1)])).toBe(false);
  });

  it("goes on with what has been said to the session since", () => {
    expect(beginsAnew(4, "completed", [prompt(1), prompt(5)])).toBe(false);
    // An order to a subagent is nothing that the user said.
    expect(beginsAnew(4, "completed", [prompt(1), prompt(5, "toolu_1")])).toBe(true);
  });

  it("is another thing than one that was never cleared", () => {
    expect(beginsAnew(0, "completed", [prompt(1)])).toBe(false);
  });
});
