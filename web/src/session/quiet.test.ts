import { describe, expect, it } from "vitest";
import type { ToolItem } from "./items";
import { groupQuiet, type QuietRow, summarizeQuiet } from "./quiet";
import type { Row } from "./rows";

const row = (name: string, key: string, change: Partial<ToolItem> = {}, more: object = {}): Row => ({
  kind: "item",
  key,
  item: { kind: "tool", key, seqs: [1], toolUseId: key, name, input: {}, phase: "success", ...change },
  children: [],
  decision: undefined,
  decided: undefined,
  ...more,
});
const text: Row = {
  kind: "item",
  key: "x",
  item: { kind: "text", key: "x", seqs: [2], text: "so", live: false },
  children: [],
  decision: undefined,
  decided: undefined,
};
const shape = (rows: readonly Row[]) =>
  rows.map((each) => (each.kind === "group" ? each.rows.map(({ key }) => key).join("+") : each.key));

describe("quiet calls", () => {
  it("are one row when they follow each other", () => {
    const rows = [
      row("Read", "a"),
      row("Grep", "b"),
      text,
      row("Glob", "c"),
      row("Bash", "d"),
      row("Read", "e"),
    ];
    expect(shape(groupQuiet(rows))).toEqual(["a+b", "x", "c", "d", "e"]);
  });

  it("keep the key of their row while more come", () => {
    const two = groupQuiet([row("Read", "a"), row("Read", "b")]);
    const three = groupQuiet([row("Read", "a"), row("Read", "b"), row("Read", "c", { phase: "running" })]);
    expect(three[0]?.key).toBe(two[0]?.key);
  });

  it.each([
    ["failed", row("Read", "b", { phase: "error" })],
    ["denied", row("Read", "b", {}, { decided: { behavior: "deny" } })],
    ["asks", row("Read", "b", {}, { decision: {} })],
    ["shows a picture", row("Read", "b", { images: ["data:"] })],
  ])("stand alone when one %s", (_, odd) => {
    expect(shape(groupQuiet([row("Read", "a"), odd, row("Read", "c")]))).toEqual(["a", "b", "c"]);
  });

  it("are not joined across the border of a branch", () => {
    const rows = [row("Read", "a"), row("Read", "b"), row("Read", "c"), row("Read", "d")];
    const stretch = (each: Row) => each.key > "b";
    expect(shape(groupQuiet(rows, stretch))).toEqual(["a+b", "c+d"]);
  });

  it("count files once and name them, and tell which is at work", () => {
    const rows = [
      row("Read", "a", { input: { file_path: "/p/one.rs" } }),
      row("Read", "b", { input: { file_path: "/p/one.rs" } }),
      row("Grep", "c"),
      row("WebFetch", "d"),
      row("Read", "e", { input: { file_path: "/p/two.rs" }, phase: "running" }),
    ] as QuietRow[];
    expect(summarizeQuiet(rows, "/p")).toMatchObject({
      read: 2,
      search: 1,
      web: 1,
      subjects: ["one.rs", "two.rs"],
      running: { key: "e" },
    });
  });
});
