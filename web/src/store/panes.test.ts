import { describe, expect, it } from "vitest";
import { beside, type Layout, type Pane, readLayout, resized, show, shown, single, without } from "./panes";

const session = (id: string): Pane => ({ kind: "session", id });
const changes = (id: string): Pane => ({ kind: "changes", id });
const layout = (panes: Pane[], active = 0): Layout => ({
  panes,
  sizes: panes.map(() => 1 / panes.length),
  active,
});

describe("the session of the address", () => {
  it("is shown in the active pane", () => {
    expect(show(single, "a").panes).toEqual([session("a")]);
    expect(show(layout([session("a"), session("b")], 1), "c").panes).toEqual([session("a"), session("c")]);
  });

  it("makes the pane active that shows it already", () => {
    const after = show(layout([session("a"), session("b")]), "b");
    expect([after.active, after.panes]).toEqual([1, [session("a"), session("b")]]);
  });

  it("takes its changes along", () => {
    expect(show(layout([session("a"), changes("a")]), "b").panes).toEqual([session("b"), changes("b")]);
    const twice = layout([session("a"), session("x"), changes("a")], 1);
    expect(show(twice, "b").panes).toEqual([session("a"), session("b"), changes("a")]);
  });

  it("never replaces changes by a session, unless there is nothing else", () => {
    const after = show(layout([session("a"), changes("a")], 1), "b");
    expect([after.active, after.panes]).toEqual([0, [session("b"), changes("b")]]);
    const still = layout([session("a"), changes("a")], 1);
    expect(show(still, "a")).toBe(still);
  });
});

describe("a pane without a session", () => {
  const choosing = layout([session("a"), { kind: "empty" }], 1);

  it("stays active until one is chosen for it", () => {
    expect(shown(choosing, "a")).toBe(choosing);
    expect(shown(choosing, "b").panes).toEqual([session("a"), session("b")]);
    expect(show(choosing, "a").active).toBe(0);
  });
});

describe("panes", () => {
  it("open beside the active one, at most four, none twice", () => {
    const two = beside(layout([session("a")]), session("b"));
    expect(two).toEqual({ panes: [session("a"), session("b")], sizes: [0.5, 0.5], active: 1 });
    expect(beside(two, session("a"))).toEqual({ ...two, active: 0 });
    const four = layout([session("a"), session("b"), session("c"), session("d")], 3);
    expect(beside(four, session("e")).panes).toEqual([
      session("a"),
      session("b"),
      session("e"),
      session("d"),
    ]);
  });

  it("leave their room to the others when they are closed", () => {
    const three: Layout = {
      panes: [session("a"), session("b"), session("c")],
      sizes: [0.5, 0.25, 0.25],
      active: 2,
    };
    expect(without(three, 0)).toEqual({ panes: [session("b"), session("c")], sizes: [0.5, 0.5], active: 1 });
    expect(without(three, 2).active).toBe(1);
    expect(without(layout([session("a"), changes("a")]), 0).panes).toEqual([session("a")]);
    expect(without(layout([session("a")]), 0).panes).toHaveLength(1);
  });

  it("are resized between their neighbours, and never too narrow", () => {
    const two = layout([session("a"), session("b")]);
    expect(resized(two, 0, 0.1).sizes).toEqual([0.6, 0.4]);
    const [left, right] = resized(two, 0, -0.9).sizes;
    expect(left).toBeCloseTo(0.12);
    expect(right).toBeCloseTo(0.88);
    expect(resized(two, 1, 0.1)).toBe(two);
  });

  it("are remembered, and odd memories are forgotten", () => {
    const two = layout([session("a"), changes("a")], 1);
    expect(readLayout(JSON.stringify(two))).toEqual(two);
    for (const odd of [
      undefined,
      "",
      "7",
      "{}",
      '{"panes":[],"sizes":[],"active":0}',
      '{"panes":[{"kind":"x"}],"sizes":[1],"active":0}',
    ])
      expect(readLayout(odd)).toBe(single);
    expect(readLayout(JSON.stringify({ ...two, sizes: [9] })).sizes).toEqual([0.5, 0.5]);
  });
});
