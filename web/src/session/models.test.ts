import { describe, expect, it } from "vitest";
import { effortsOf, parseModels } from "./models";

const told = {
  models: [
    { value: "default", displayName: "Default", supportedEffortLevels: ["low"] },
    { value: "opus", displayName: "Opus 5", description: "Deep", supportedEffortLevels: ["low", "high"] },
    { value: "haiku" },
    { nonsense: true },
  ],
};

describe("models", () => {
  it("are those with a name that can be chosen", () => {
    expect(parseModels(told)).toEqual([
      { value: "opus", name: "Opus 5", description: "Deep", efforts: ["low", "high"] },
      { value: "haiku", name: "haiku", description: undefined, efforts: [] },
    ]);
    expect(parseModels("what?")).toEqual([]);
  });

  it("say how hard they can try", () => {
    const models = parseModels(told);
    expect(effortsOf(models, "haiku")).toEqual([]);
    expect(effortsOf(models, undefined)).toEqual(["low", "high"]);
  });
});
