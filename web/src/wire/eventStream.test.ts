import { expect, it } from "vitest";
import { EventParser } from "./eventStream";
import { fileName } from "./files";

const stream =
  ': still here\n\nevent: changed\nid: 3\ndata: {"a":1}\n\ndata:one\r\ndata: two\r\n\r\nevent: empty\n\n';
const events = [
  { type: "changed", data: '{"a":1}' },
  { type: "message", data: "one\ntwo" },
];

it("reads events however the stream is split", () => {
  for (const length of [1, 2, 7, stream.length]) {
    const parser = new EventParser();
    const found = [];
    for (let at = 0; at < stream.length; at += length)
      found.push(...parser.push(stream.slice(at, at + length)));
    expect(found).toEqual(events);
  }
});

it("takes a file's name from its header", () => {
  expect(fileName('attachment; filename="a b.md"')).toBe("a b.md");
  expect(fileName(null)).toBeUndefined();
});
