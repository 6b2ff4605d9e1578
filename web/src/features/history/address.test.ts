import { describe, expect, it } from "vitest";
import { parseView, serverFilters, type View, viewAddress } from "./address";

describe("the address of the history page", () => {
  it.each<[string, View]>([
    ["", { view: "list", filters: {} }],
    ["?q=login+page&project=-home-me", { view: "list", filters: { q: "login page", project: "-home-me" } }],
    ["/s/0af3-bb", { view: "session", id: "0af3-bb", at: undefined }],
    ["/s/0af3-bb?at=77", { view: "session", id: "0af3-bb", at: "77" }],
    ["/usage?days=7&by=models", { view: "usage", days: "7", by: "models" }],
  ])("%s", (address, view) => {
    expect(parseView(address)).toEqual(view);
    expect(viewAddress(view)).toBe(address);
  });

  it("takes what makes no sense for the list", () => {
    expect(parseView("/s/../../etc")).toEqual({ view: "list", filters: {} });
    expect(parseView("/nowhere?x=1")).toEqual({ view: "list", filters: {} });
  });

  it("asks for times, not for days", () => {
    const now = 1_700_000_012_345;
    expect(serverFilters({ q: "a", days: "7" }, now)).toEqual({ q: "a", from: 1_699_395_180_000 });
    expect(serverFilters({ tool: "Bash" }, now)).toEqual({ tool: "Bash", from: undefined });
  });
});
