import { describe, expect, it } from "vitest";
import type { Message } from "../gen/history";
import { append, emptyTranscript } from "./transcript";
import { entriesOf, messageIndex, wholeResults } from "./historyEntries";

const message = (part: Partial<Message>): Message => ({
  role: "user",
  content: [],
  timestamp: "2026-11-16T00:00:00.000Z",
  uuid: "u",
  parentUuid: null,
  ...part,
});
const text = (words: string) => ({ type: "text", text: words });

const messages: Message[] = [
  message({ uuid: "1", content: [text("fix the login page")] }),
  message({ uuid: "2", is_meta: true, content: [text("a reminder")] }),
  message({
    uuid: "3",
    role: "assistant",
    message_id: "m1",
    content: [{ type: "tool_use", id: "t1", name: "Task", input: {} }],
  }),
  message({ uuid: "4", sidechain: true, parent_tool_use_id: "t1", content: [text("look around")] }),
  message({
    uuid: "5",
    content: [{ type: "tool_result", tool_use_id: "t1", content: "found", tool_name: "Task" }],
    patch: { file_path: "/a", structured_patch: [] },
  }),
  message({ uuid: "6", compaction: { trigger: "manual" }, content: [text("what was said")] }),
  message({
    uuid: "7",
    content: [text("<command-name>/review</command-name><command-args>all</command-args>")],
  }),
];

describe("a transcript of the history", () => {
  it("becomes the items of a conversation", () => {
    const { items } = append(emptyTranscript, entriesOf(messages, 0));
    expect(items.map((item) => [item.kind, item.parent])).toEqual([
      ["prompt", undefined],
      ["tool", undefined],
      ["prompt", "t1"],
      ["notice", undefined],
      ["prompt", undefined],
    ]);
    expect(items[1]).toMatchObject({ name: "Task", phase: "success", output: "found" });
    expect(items.at(-2)).toMatchObject({ code: "compacted", text: "what was said" });
    expect(items.at(-1)).toMatchObject({ text: "/review all" });
  });

  it("keeps numbers when older messages come before", () => {
    const late = entriesOf(messages.slice(2), 2);
    expect(late.map((entry) => entry.seq)).toEqual(
      entriesOf(messages, 0)
        .slice(1)
        .map((entry) => entry.seq),
    );
    for (const entry of late) expect(messages[2 + messageIndex(entry.seq, 2)]).toBeDefined();
    expect(messageIndex(late[0]?.seq ?? 0, 2)).toBe(0);
  });

  it("names the files of large results", () => {
    const large = message({
      content: [{ type: "tool_result", persisted_output: { name: "a.txt", size: 9 } }],
    });
    expect(wholeResults(large)).toEqual([{ name: "a.txt", size: 9 }]);
    expect(wholeResults(message({ content: [text("x")] }))).toEqual([]);
  });
});
