import { describe, expect, it } from "vitest";
import { parseContext } from "./contextUsage";

describe("the picture of the context", () => {
  it("has what fills it, largest first, without what is room or not loaded", () => {
    const told = {
      totalTokens: 30,
      maxTokens: 100,
      categories: [
        { name: "System prompt", tokens: 10 },
        { name: "Messages", tokens: 20 },
        { name: "Free space", tokens: 70 },
        { name: "System tools (deferred)", tokens: 50, isDeferred: true },
      ],
    };
    expect(parseContext(told)).toEqual({
      used: 30,
      size: 100,
      parts: [
        { name: "Messages", tokens: 20 },
        { name: "System prompt", tokens: 10 },
      ],
    });
  });

  it("is not drawn from nothing", () => {
    expect(parseContext({})).toBeUndefined();
    expect(parseContext(null)).toBeUndefined();
  });
});
