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
  filterSessions(all, filter, words, { seen: { since: 0, seen: {} }, calling: new Set(["calls"]) }).map(
    ({ id }) => id,
  );

it("takes what asks and what calls back for waiting", () => {
  expect(shown("waiting")).toEqual(["asks", "calls"]);
});

it("shows what is archived where it is asked for, and nowhere else", () => {
  expect(shown("all")).toEqual(["quiet", "asks", "calls"]);
  expect(shown("archived")).toEqual(["stored"]);
});

it("finds by every word, in titles and folders", () => {
  expect(shown("all", "SHOP qui")).toEqual(["quiet"]);
});
