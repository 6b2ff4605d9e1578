import { describe, expect, it } from "vitest";
import type { SessionInfo } from "../gen/events";
import { moveTo, stepTo } from "./moves";
import { rowsOf, type Section } from "./sections";

const session = (id: string, cwd = "/a"): SessionInfo => ({ id, title: id, cwd }) as SessionInfo;
const [a, b, c, p, q, x] = ["a", "b", "c", "p", "q", "x"].map((id) =>
  session(id, id === "x" ? "/b" : "/a"),
) as [SessionInfo, SessionInfo, SessionInfo, SessionInfo, SessionInfo, SessionInfo];
const needs: Section = { key: "needs", kind: "needs", title: "", sessions: [] };
const pinned: Section = { key: "pinned", kind: "pinned", title: "", sessions: [p, q] };
const group: Section = { key: "group:g", kind: "group", title: "G", sessions: [] };
const project: Section = { key: "project:/a", kind: "project", title: "a", cwd: "/a", sessions: [a, b, c] };
const other: Section = { key: "project:/b", kind: "project", title: "b", cwd: "/b", sessions: [x] };

describe("putting a session somewhere", () => {
  it("pins it before the one that it was put on", () => {
    expect(moveTo(a, project, pinned, 1, "activity")).toEqual({ kind: "pin", before: "q" });
    expect(moveTo(a, project, pinned, 2, "activity")).toEqual({ kind: "pin", before: undefined });
    expect(moveTo(p, pinned, pinned, 2, "activity")).toEqual({ kind: "pin", before: undefined });
  });

  it("means nothing where it stands already, where it does not belong, and where sections make themselves", () => {
    expect(moveTo(p, pinned, pinned, 0, "own")).toBeUndefined();
    expect(moveTo(p, pinned, pinned, 1, "own")).toBeUndefined();
    expect(moveTo(a, project, other, 0, "own")).toBeUndefined();
    expect(moveTo(a, project, needs, 0, "own")).toBeUndefined();
  });

  it("puts it into a group and out again, whatever the order", () => {
    expect(moveTo(a, project, group, 0, "activity")).toEqual({ kind: "group", group: "g" });
    const inGroup = { ...group, sessions: [a] };
    expect(moveTo(a, inGroup, { ...project, sessions: [b, c] }, 1, "activity")).toEqual({
      kind: "group",
      group: undefined,
    });
  });

  it("changes the order only where it is the viewer's own", () => {
    expect(moveTo(a, project, project, 3, "activity")).toEqual({ kind: "sorted" });
    expect(moveTo(a, project, project, 3, "own")).toEqual({
      kind: "place",
      group: undefined,
      others: [b, c],
      to: 2,
    });
    expect(moveTo(c, project, project, 0, "own")).toMatchObject({ to: 0 });
  });
});

describe("moving a session with the keys", () => {
  const rows = rowsOf([pinned, group, project, other], new Set(), new Set(), undefined);

  it("goes one place up or down", () => {
    expect(stepTo(rows, "b", -1, "own")).toMatchObject({ kind: "place", to: 0, others: [a, c] });
    expect(stepTo(rows, "b", 1, "own")).toMatchObject({ kind: "place", to: 2, others: [a, c] });
    expect(stepTo(rows, "q", -1, "activity")).toEqual({ kind: "pin", before: "p" });
  });

  it("goes over the edge into the next section that takes it", () => {
    expect(stepTo(rows, "a", -1, "activity")).toEqual({ kind: "group", group: "g" });
    expect(stepTo(rows, "q", 1, "activity")).toEqual({ kind: "group", group: "g" });
    expect(stepTo(rows, "c", 1, "activity")).toBeUndefined();
    expect(stepTo(rows, "p", -1, "activity")).toBeUndefined();
  });
});
