import { describe, expect, it } from "vitest";
import { pointAt } from "./uiContext";

describe("lines as context", () => {
  it("grow to a range within a file, and begin anew in another", () => {
    const one = pointAt(undefined, "/p/a.rs", 12);
    expect(one.selectedFile).toEqual({ path: "/p/a.rs", startLine: 12, endLine: 12 });
    const range = pointAt(one, "/p/a.rs", 8);
    expect(range.selectedFile).toEqual({ path: "/p/a.rs", startLine: 8, endLine: 12 });
    expect(pointAt(range, "/p/b.rs", 3).selectedFile).toEqual({ path: "/p/b.rs", startLine: 3, endLine: 3 });
  });
});
