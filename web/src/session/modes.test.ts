import { describe, expect, it } from "vitest";
import { followingModes } from "./modes";

describe("the modes that can follow a plan", () => {
  it.each([
    ["plan", ["default", "acceptEdits"]],
    [undefined, ["default", "acceptEdits"]],
    ["acceptEdits", ["acceptEdits", "default"]],
    ["bypassPermissions", ["bypassPermissions", "default", "acceptEdits"]],
  ] as const)("in %s begin with what changes nothing: %s", (current, modes) => {
    expect(followingModes(current)).toEqual(modes);
  });
});
