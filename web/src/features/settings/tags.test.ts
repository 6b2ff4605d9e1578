import { expect, it } from "vitest";
import { withTag } from "./tags";

it("adds a tag once, without the sign before it", () => {
  expect(withTag(["bug"], " # late  night ")).toEqual(["bug", "late night"]);
  expect(withTag(["bug"], "#BUG")).toEqual(["bug"]);
  expect(withTag(["bug"], " # ")).toEqual(["bug"]);
});
