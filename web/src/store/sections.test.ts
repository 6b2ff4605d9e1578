import { describe, expect, it } from "vitest";
import type { SessionInfo } from "../gen/events";
import { type Arrangement, noArrangement } from "../session/arrangement";
import { FIRST_OF_PROJECT, projectTitles, rowsOf, sectionsOf, typedAhead } from "./sections";

const session = (id: string, updatedAt: number, rest: Partial<SessionInfo> = {}): SessionInfo =>
  ({
    id,
    title: id,
    updatedAt,
    createdAt: updatedAt,
    status: "idle",
    cwd: "/home/u/app",
    pending: 0,
    ...rest,
  }) as SessionInfo;

const arrangement: Arrangement = {
  sorting: "activity",
  groups: [{ id: "g", name: "Release", place: 0 }],
  placements: new Map([
    ["pin2", { pinned: 2, tags: [] }],
    ["pin1", { pinned: 1, group: "g", tags: [] }],
    ["grouped", { group: "g", tags: [] }],
    ["lost", { group: "gone", tags: [] }],
    ["asks", { pinned: 0, group: "g", tags: [] }],
  ]),
};

const sessions = [
  session("newest", 90, { cwd: "/home/u/web" }),
  session("works", 80, { status: "running" }),
  session("asks", 70, { pending: 1 }),
  session("pin2", 60),
  session("pin1", 50, { status: "running" }),
  session("grouped", 40),
  session("lost", 30),
  session("older", 20, { cwd: "/home/u/web" }),
  session("away", 10, { archived: true }),
];

const shape = (list: ReturnType<typeof sectionsOf>) =>
  list.map(({ kind, title, sessions: own }) => [kind, title, own.map(({ id }) => id)]);

describe("the sections of the list", () => {
  it("have each session once: what needs the user, pins, what runs, groups, projects", () => {
    expect(shape(sectionsOf(sessions, arrangement, [{ id: "asks", count: 1, since: 1 }]))).toEqual([
      ["needs", "", ["asks"]],
      ["pinned", "", ["pin1", "pin2"]],
      ["running", "", ["works"]],
      ["group", "Release", ["grouped"]],
      ["project", "web", ["newest", "older"]],
      ["project", "app", ["lost"]],
    ]);
  });

  it("leave a session that has been answered where it was pinned", () => {
    expect(shape(sectionsOf(sessions, arrangement, []))[0]).toEqual(["pinned", "", ["asks", "pin1", "pin2"]]);
  });

  it("need no order of the queue but its own", () => {
    const asking = ["c", "a", "b"].map((id, index) => session(id, index, { pending: 1 }));
    const queue = ["b", "c", "a"].map((id) => ({ id, count: 1, since: 1 }));
    expect(shape(sectionsOf(asking, noArrangement, queue))).toEqual([["needs", "", ["b", "c", "a"]]]);
  });

  it("keep the viewer's own order: new ones first, and moved ones where they were put", () => {
    const own: Arrangement = {
      sorting: "own",
      groups: [],
      placements: new Map([["b", { place: 35, tags: [] }]]),
    };
    const list = [
      session("a", 99, { createdAt: 40 }),
      session("b", 98, { createdAt: 10 }),
      session("c", 97, { createdAt: 30 }),
      session("d", 96, { createdAt: 50, cwd: "/home/u/zoo" }),
    ];
    expect(shape(sectionsOf(list, own, []))).toEqual([
      ["project", "app", ["a", "b", "c"]],
      ["project", "zoo", ["d"]],
    ]);
  });

  it("hold 3,000 sessions without anyone noticing", () => {
    const many = Array.from({ length: 3000 }, (_, index) =>
      session(`s${index}`, index, { cwd: `/home/u/p${index % 40}` }),
    );
    const found = sectionsOf(many, noArrangement, []);
    expect(found).toHaveLength(40);
    const rows = rowsOf(found, new Set(), new Set(), undefined);
    // A heading, the first few, and a row that says how many there are beside them.
    expect(rows).toHaveLength(40 * (FIRST_OF_PROJECT + 2));
    expect(rows.find((row) => row.kind === "more")).toMatchObject({ hidden: 75 - FIRST_OF_PROJECT });
  });
});

describe("the rows of the list", () => {
  const many = Array.from({ length: FIRST_OF_PROJECT + 3 }, (_, index) => session(`s${index}`, 100 - index));
  const two = sectionsOf([...many, session("x", 1, { cwd: "/b" })], noArrangement, []);
  const kinds = (rows: ReturnType<typeof rowsOf>) => rows.map(({ kind }) => kind).join(" ");

  it("have no heading where there is but one project, and show all of it", () => {
    const rows = rowsOf(
      sectionsOf(many, noArrangement, []),
      new Set(["project:/home/u/app"]),
      new Set(),
      undefined,
    );
    expect(rows.map(({ kind }) => kind)).toEqual(many.map(() => "session"));
  });

  it("are folded, shown in part, or shown whole", () => {
    const key = "project:/home/u/app";
    const shown = "session ".repeat(FIRST_OF_PROJECT);
    expect(kinds(rowsOf(two, new Set(), new Set(), undefined))).toBe(`header ${shown}more header session`);
    expect(kinds(rowsOf(two, new Set([key]), new Set(), undefined))).toBe("header header session");
    const whole = rowsOf(two, new Set(), new Set([key]), undefined);
    expect(kinds(whole)).toBe(`header ${"session ".repeat(many.length)}header session`);
  });

  it("always have the session that is open", () => {
    const last = `s${many.length - 1}`;
    const rows = rowsOf(two, new Set(), new Set(), last);
    expect(rows.some((row) => row.key === last)).toBe(true);
    expect(rows.find((row) => row.kind === "more")).toMatchObject({ hidden: 2 });
  });

  it("are found by their first letters", () => {
    const rows = rowsOf(
      sectionsOf(
        ["Alpha", "beta", "Bear"].map((id, at) => session(id, 9 - at)),
        noArrangement,
        [],
      ),
      new Set(),
      new Set(),
      undefined,
    );
    expect(typedAhead(rows, "b", 0)).toBe(1);
    expect(typedAhead(rows, "b", 1)).toBe(2);
    expect(typedAhead(rows, "be", 2)).toBe(2);
    expect(typedAhead(rows, "bet", 2)).toBe(1);
    expect(typedAhead(rows, "A", 2)).toBe(0);
    expect(typedAhead(rows, "z", 0)).toBe(-1);
  });
});

describe("the names of projects", () => {
  it("say more where they would be the same", () => {
    const titles = projectTitles(["/a/app", "/b/app", "/c/web", "/", "C:\\x\\app"]);
    expect([...titles.values()]).toEqual(expect.arrayContaining(["app · a", "app · b", "web"]));
    expect(titles.get("/")).toBeTruthy();
  });
});
