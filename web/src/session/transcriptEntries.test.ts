import { describe, expect, it } from "vitest";
import type { TranscriptEntry } from "../gen/history";
import { acceptEvents, openLog } from "./log";
import { append, emptyTranscript } from "./transcript";
import { entriesOf, indexOf } from "./transcriptEntries";

const messages: (TranscriptEntry["message"] | undefined)[] = [
  { type: "user_prompt", prompt: "fix the login page", promptId: "1", uuid: "1" },
  undefined,
  {
    type: "assistant",
    message: { id: "m1", content: [{ type: "tool_use", id: "t1", name: "Task", input: {} }] },
    parent_tool_use_id: null,
  },
  { type: "user", message: { content: [{ type: "text", text: "look around" }] }, parent_tool_use_id: "t1" },
  {
    type: "user",
    message: { content: [{ type: "tool_result", tool_use_id: "t1", content: "found" }] },
    tool_use_result: { totalTokens: 7 },
    parent_tool_use_id: null,
  },
  { type: "system", subtype: "compact_boundary", summary: "what was said" },
];
const told = messages.map((message, index): TranscriptEntry => ({
  uuid: `${index}`,
  timestamp: "2026-11-16T00:00:00.000Z",
  ...(message && { message }),
}));

describe("a transcript of the history", () => {
  it("becomes the items of a conversation, the same as those of a live session", () => {
    const { items } = append(emptyTranscript, entriesOf(told, 0));
    expect(items.map((item) => [item.kind, item.parent])).toEqual([
      ["prompt", undefined],
      ["tool", undefined],
      ["prompt", "t1"],
      ["notice", undefined],
    ]);
    expect(items[1]).toMatchObject({ name: "Task", phase: "success", output: "found" });
    const live = acceptEvents(
      openLog(0, 0),
      messages.slice(2).map((message, index) => ({
        type: "stream.message",
        payload: { sessionId: "s", seq: index + 1, message: message ?? {} },
      })),
    );
    const plain = (all: typeof items) => all.map(({ key: _key, seqs: _seqs, ...item }) => item);
    expect(plain(live.transcript.items)).toEqual(plain(items.slice(1)));
  });

  it("shows the images that were sent, with words or without", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    const odd = { type: "image", source: { type: "url", url: "https://example.com/x.png" } };
    const sent: TranscriptEntry[] = [
      {
        uuid: "1",
        timestamp: "",
        message: { type: "user_prompt", prompt: "", promptId: "1", images: [image, odd] },
      },
    ];
    expect(append(emptyTranscript, entriesOf(sent, 0)).items).toMatchObject([
      { kind: "prompt", text: "", images: ["data:image/png;base64,AAAA"] },
    ]);
  });

  it("keeps numbers when older messages come before", () => {
    const late = entriesOf(told.slice(2), 2);
    expect(late.map((entry) => entry.seq)).toEqual(
      entriesOf(told, 0)
        .slice(1)
        .map((entry) => entry.seq),
    );
    expect(late.map(({ seq }) => told[2 + indexOf(seq, 2)]?.uuid)).toEqual(["2", "3", "4", "5"]);
  });
});
