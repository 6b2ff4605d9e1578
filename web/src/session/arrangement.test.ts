import { describe, expect, it } from "vitest";
import type { ServerEvent } from "../gen/events";
import {
  allTags,
  movedPlaces,
  noArrangement,
  placementOf,
  placeBetween,
  reduceArrangement,
} from "./arrangement";

const whole: ServerEvent = {
  type: "arrangement",
  payload: {
    sorting: "own",
    groups: [
      { id: "b", name: "Later", place: 2 },
      { id: "a", name: "Work", place: 1 },
    ],
    sessions: [
      { sessionId: "1", pinned: 1, group: "a", tags: ["bug"] },
      { sessionId: "2", group: "a", tags: [] },
    ],
  },
};
const changed = (payload: Extract<ServerEvent, { type: "arrangement.changed" }>["payload"]): ServerEvent => ({
  type: "arrangement.changed",
  payload,
});

describe("arrangement", () => {
  const before = reduceArrangement(noArrangement, whole);

  it("has the groups in their order", () => {
    expect(before.groups.map(({ name }) => name)).toEqual(["Work", "Later"]);
    expect(placementOf(before, "1")).toEqual({ pinned: 1, group: "a", tags: ["bug"] });
    expect(placementOf(before, "3")).toEqual({ tags: [] });
  });

  it("takes changes from elsewhere, one at a time", () => {
    const moved = reduceArrangement(before, changed({ session: { sessionId: "2", tags: ["x"] } }));
    expect(placementOf(moved, "2")).toEqual({ tags: ["x"] });
    const renamed = reduceArrangement(moved, changed({ group: { id: "b", name: "First", place: 0 } }));
    expect(renamed.groups.map(({ name }) => name)).toEqual(["First", "Work"]);
    expect(reduceArrangement(renamed, changed({ sorting: "activity" })).sorting).toBe("activity");
  });

  it("a group that goes leaves its sessions, and nothing where nothing else was chosen", () => {
    const after = reduceArrangement(before, changed({ removedGroup: "a" }));
    expect(after.groups.map(({ id }) => id)).toEqual(["b"]);
    expect([...after.placements]).toEqual([["1", { pinned: 1, tags: ["bug"] }]]);
  });

  it("forgets a session that is deleted, and is the same where nothing was chosen", () => {
    const gone: ServerEvent = { type: "session.deleted", payload: { sessionId: "1" } };
    const after = reduceArrangement(before, gone);
    expect([...after.placements.keys()]).toEqual(["2"]);
    expect(reduceArrangement(after, gone)).toBe(after);
  });

  it("lists tags, the most used first", () => {
    const more = reduceArrangement(before, changed({ session: { sessionId: "2", tags: ["bug", "a"] } }));
    expect(allTags(more)).toEqual(["bug", "a"]);
  });
});

describe("places", () => {
  it("lie between their neighbours", () => {
    expect(placeBetween(undefined, undefined)).toBe(0);
    expect(placeBetween(undefined, 5)).toBe(4);
    expect(placeBetween(5, undefined)).toBe(6);
    expect(placeBetween(1, 2)).toBe(1.5);
    expect(placeBetween(1, 1)).toBeUndefined();
    expect(placeBetween(1, 1 + Number.EPSILON)).toBeUndefined();
  });

  const places = ["a", "b", "c"].map((id, index) => ({ id, place: index }));

  it("change for the one that moves only", () => {
    expect(movedPlaces(places, "c", 0)).toEqual([{ id: "c", place: -1 }]);
    expect(movedPlaces(places, "a", 1)).toEqual([{ id: "a", place: 1.5 }]);
    expect(movedPlaces(places, "a", 2)).toEqual([{ id: "a", place: 3 }]);
    expect(movedPlaces(places, "new", 1)).toEqual([{ id: "new", place: 0.5 }]);
  });

  it("are spread again where no room is left", () => {
    const same = ["a", "b", "c"].map((id) => ({ id, place: 7 }));
    expect(movedPlaces(same, "c", 1)).toEqual([
      { id: "a", place: 7 },
      { id: "c", place: 8 },
      { id: "b", place: 9 },
    ]);
  });

  it("keep their order however often something is put into the same gap", () => {
    let order = [
      { id: "first", place: 1_763_000_000_000 },
      { id: "last", place: 1_763_000_000_001 },
    ];
    for (let time = 0; time < 200; time += 1) {
      const moves = new Map(movedPlaces(order, `s${time}`, 1).map(({ id, place }) => [id, place]));
      order = [...order, { id: `s${time}`, place: 0 }]
        .map(({ id, place }) => ({ id, place: moves.get(id) ?? place }))
        .toSorted((a, b) => a.place - b.place);
      expect(order.slice(0, 2).map(({ id }) => id)).toEqual(["first", `s${time}`]);
      expect(order.at(-1)?.id).toBe("last");
    }
    expect(new Set(order.map(({ place }) => place)).size).toBe(order.length);
  });
});
