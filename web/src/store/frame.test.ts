import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { frameQueue } from "./frame";

const FRAME_MS = 1000 / 60;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  vi.stubGlobal("requestAnimationFrame", (call: (now: number) => void) =>
    setTimeout(() => call(performance.now()), FRAME_MS),
  );
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const nextFrame = () => vi.advanceTimersByTime(FRAME_MS);

/** Words can wait, commands can't. */
function queue(): { push(value: string): void; flush(): void; seen: string[][] } {
  const seen: string[][] = [];
  const { push, flush } = frameQueue<string>(
    (values) => seen.push(values),
    (value) => value.startsWith("word"),
  );
  return { push, flush, seen };
}

it("hands on the first word with the next frame", () => {
  const { push, seen } = queue();
  push("word 1");
  nextFrame();
  expect(seen).toEqual([["word 1"]]);
});

it("hands on words that come quickly at every other frame", () => {
  const { push, seen } = queue();
  for (let frame = 0; frame < 60; frame += 1) {
    push(`word ${frame}`);
    nextFrame();
  }
  expect(seen).toHaveLength(30);
  expect(seen.flat()).toHaveLength(59);
});

it("does not let a decision wait for more words, and keeps the order", () => {
  const { push, seen } = queue();
  push("word 1");
  nextFrame();
  push("word 2");
  push("decision");
  push("word 3");
  nextFrame();
  expect(seen).toEqual([["word 1"], ["word 2", "decision", "word 3"]]);
});

it("hands on what waits when asked to, once", () => {
  const { push, flush, seen } = queue();
  flush();
  push("word 1");
  push("word 2");
  flush();
  nextFrame();
  vi.advanceTimersByTime(250);
  expect(seen).toEqual([["word 1", "word 2"]]);
  push("word 3");
  nextFrame();
  nextFrame();
  expect(seen.at(-1)).toEqual(["word 3"]);
});

it("keeps up in a page that gets no frames", () => {
  const { push, seen } = queue();
  vi.stubGlobal("requestAnimationFrame", () => 1);
  push("word 1");
  vi.advanceTimersByTime(250);
  expect(seen).toEqual([["word 1"]]);
});
