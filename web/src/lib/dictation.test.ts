import { afterEach, expect, it, vi } from "vitest";
import { joined, type Recognition, recognizer, startDictation } from "./dictation";

afterEach(() => vi.unstubAllGlobals());

const result = (transcript: string, isFinal: boolean) => ({ isFinal, 0: { transcript } });

it("passes on what is certain, once, and says why it ended", () => {
  expect(recognizer()).toBeUndefined();
  const made: Recognition[] = [];
  class Fake {
    lang = "";
    constructor() {
      made.push(this as unknown as Recognition);
    }
    start() {}
  }
  vi.stubGlobal("webkitSpeechRecognition", Fake);
  const heard: string[] = [];
  const ends: unknown[] = [];
  startDictation("zh-CN", { onText: (text) => heard.push(text), onEnd: (problem) => ends.push(problem) });
  const [recognition] = made;
  expect(recognition?.lang).toBe("zh-CN");
  recognition?.onresult?.({ resultIndex: 0, results: [result("hel", false)] });
  recognition?.onresult?.({ resultIndex: 0, results: [result(" hello ", true)] });
  recognition?.onresult?.({ resultIndex: 1, results: [result("hello", true), result("there", true)] });
  recognition?.onerror?.({ error: "not-allowed" });
  recognition?.onend?.();
  expect(heard).toEqual(["hello", "there"]);
  expect(ends).toEqual(["denied"]);
});

it("joins words with a space where the script has them", () => {
  expect(joined("", "hello")).toBe("hello");
  expect(joined("hello", "there")).toBe("hello there");
  expect(joined("hello\n", "there")).toBe("hello\nthere");
  expect(joined("你好", "世界")).toBe("你好世界");
});
