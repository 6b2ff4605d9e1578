import { expect, it } from "vitest";
import { noArrangement } from "../session/arrangement";
import { neighbourOf, tabsOf, withTab } from "./tabs";

const pinned = {
  ...noArrangement,
  placements: new Map([
    ["p2", { pinned: 2, tags: [] }],
    ["p1", { pinned: 1, tags: [] }],
    ["tagged", { tags: ["x"] }],
  ]),
};

it("a tab stays where it is, and the oldest makes room for a new one", () => {
  expect(withTab(["a", "b"], "a")).toEqual(["a", "b"]);
  expect(withTab(["a"], "b")).toEqual(["a", "b"]);
  const many = Array.from({ length: 24 }, (_, index) => String(index));
  expect(withTab(many, "new")).toEqual([...many.slice(1), "new"]);
});

it("has the pinned first, then what was opened on purpose, then what is only looked at", () => {
  expect(tabsOf(pinned, { open: ["a", "p1"], visited: "b" })).toEqual([
    { id: "p1", kind: "pinned" },
    { id: "p2", kind: "pinned" },
    { id: "a", kind: "open" },
    { id: "b", kind: "visited" },
  ]);
});

it("has nothing twice", () => {
  expect(tabsOf(pinned, { open: ["a"], visited: "a" })).toHaveLength(3);
  expect(tabsOf(pinned, { open: [], visited: "p1" })).toHaveLength(2);
});

it("shows the neighbour when a tab is closed", () => {
  const tabs = tabsOf(pinned, { open: ["a"], visited: undefined });
  expect(neighbourOf(tabs, "p1")).toBe("p2");
  expect(neighbourOf(tabs, "a")).toBe("p2");
  expect(neighbourOf(tabs.slice(0, 1), "p1")).toBeUndefined();
});
