import { expect, it } from "vitest";
import type { SessionInfo } from "../../gen/events";
import { emptySummary } from "../../session/summary";
import { byServer } from "./LiveServers";

it("names each server once, with the sessions that say how it does", () => {
  const session = (id: string, status: string) =>
    ({ id, summary: { ...emptySummary, mcp: { notes: status } } }) as unknown as SessionInfo;
  const live = byServer([session("a", "connected"), session("b", "failed"), session("c", "connected")]);
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
