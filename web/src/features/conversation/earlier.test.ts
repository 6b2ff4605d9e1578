import { expect, test } from "vitest";
import type { TranscriptEntry } from "../../gen/history";
import { messageEntry } from "../../session/entries";
import { append, emptyTranscript } from "../../session/transcript";
import { hasAny } from "./earlier";

const answer = (id: string): TranscriptEntry => ({
  uuid: `line of ${id}`,
  timestamp: "2026-11-16T10:00:00Z",
  message: { type: "assistant", message: { id, content: [{ type: "text", text: "Yes." }] } },
});

test("a log that begins with what was said before is told from one that does not", () => {
  const own = append(emptyTranscript, [
    { kind: "prompt", seq: 1, prompt: "go on" },
    messageEntry(2, {
      type: "assistant",
      message: { id: "m2", content: [{ type: "text", text: "Yes." }] },
    }),
  ]);
  expect(hasAny(own, [answer("m1"), answer("m2")])).toBe(true);
  expect(hasAny(own, [answer("m1")])).toBe(false);
  expect(hasAny(emptyTranscript, [answer("m1")])).toBe(false);
});
