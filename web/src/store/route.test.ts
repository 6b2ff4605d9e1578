import { describe, expect, it } from "vitest";
import { parseRoute, type Route, routeHash } from "./route";

describe("the address", () => {
  it.each<[string, Route]>([
    ["#/", { view: "latest" }],
    ["#/new", { view: "start" }],
    ["#/s/0f-1", { view: "session", id: "0f-1" }],
    ["#/skills", { view: "page", page: "skills", rest: "" }],
    ["#/history/project-1?q=x", { view: "page", page: "history", rest: "/project-1?q=x" }],
  ])("%s", (hash, route) => {
    expect(parseRoute(hash)).toEqual(route);
    expect(routeHash(route)).toBe(hash);
  });

  it.each(["", "#", "#/nonsense", "#/s/", "#/s/../x", "#javascript:alert(1)"])("%s leads home", (hash) => {
    expect(parseRoute(hash)).toEqual({ view: "latest" });
  });
});
