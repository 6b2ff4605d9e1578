import { expect, it } from "vitest";
import type { SessionInfo } from "../gen/events";
import { filterSessions, type SessionFilter } from "./filter";

const session = (id: string, more: Partial<SessionInfo> = {}): SessionInfo => ({
  id,
  title: id,
  status: "idle",
  cwd: "/home/user/shop",
  createdAt: 1,
  updatedAt: 1,
  archived: false,
  pending: 0,
  queue: [],
  lastSeq: 1,
  permissionMode: "default",
  approval: "ask",
  settings: { permissionMode: "default", approval: "ask" },
  agent: { state: "absent" },
  ...more,
});

const all = [
  session("quiet"),
  session("asks", { pending: 1 }),
  session("calls", { status: "running" }),
  session("stored", { archived: true, pending: 1 }),
];

const shown = (filter: SessionFilter, words = "") =>
  filterSessions(all, filter, words, {
    seen: { since: 0, seen: {} },
    waiting: new Set(["asks", "calls", "stored"]),
    tagsOf: (id) => (id === "quiet" ? ["Bug", "缺陷"] : []),
  }).map(({ id }) => id);

it("shows what waits wherever it was put", () => {
  expect(shown("waiting")).toEqual(["asks", "calls", "stored"]);
});

it("shows what is archived where it is asked for, and nowhere else", () => {
  expect(shown("all")).toEqual(["quiet", "asks", "calls"]);
  expect(shown("archived")).toEqual(["stored"]);
});

it("finds by every word, in titles and folders", () => {
  expect(shown("all", "SHOP qui")).toEqual(["quiet"]);
});

it("finds by tags, from their beginning where a # says so", () => {
  expect(shown("all", "#bu")).toEqual(["quiet"]);
  expect(shown("all", "缺")).toEqual(["quiet"]);
  expect(shown("all", "#ug")).toEqual([]);
});
