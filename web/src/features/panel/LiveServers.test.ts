import { expect, it } from "vitest";
import type { SessionInfo } from "../../gen/events";
import { byServer } from "./LiveServers";

it("names each server once, with the sessions that say how it does", () => {
  const sessions = ["a", "b", "c"].map((id) => ({ id }) as SessionInfo);
  const said: Record<string, string> = { a: "connected", b: "failed", c: "connected" };
  const live = byServer(sessions, (id) => ({ mcp_servers: [{ name: "notes", status: said[id] }] }));
  expect(
    live.map(({ name, statuses }) => [
      name,
      [...statuses].map(([status, by]) => [status, by.map((s) => s.id)]),
    ]),
  ).toEqual([
    [
      "notes",
      [
        ["connected", ["a", "c"]],
        ["failed", ["b"]],
      ],
    ],
  ]);
});
