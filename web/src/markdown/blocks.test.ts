import { parseMarkdownIntoBlocks } from "streamdown";
import { describe, expect, it } from "vitest";
import { type Blocks, cutBlocks, noBlocks } from "./blocks";

const text = [
  "# Title",
  "A paragraph with **bold** words\nover two lines.",
  "- one\n\n- two\n\n  more of two",
  "```rust\nfn main() {\n\n    // a blank line above\n}\n```",
  "| a | b |\n| - | - |\n| 1 | 2 |",
  "Heading by underline\n---",
  "> a quote\n> of two lines",
  "The end.",
].join("\n\n");

const all = (blocks: Blocks) => [...blocks.finished, blocks.tail];

describe("a growing text", () => {
  it("is cut as if it had been there at once, wherever it paused", () => {
    let blocks = noBlocks;
    for (let length = 1; length <= text.length; length += 1) {
      const soFar = text.slice(0, length);
      blocks = cutBlocks(blocks, soFar, parseMarkdownIntoBlocks);
      expect(all(blocks).join("")).toBe(soFar);
    }
    const atOnce = parseMarkdownIntoBlocks(text);
    expect(blocks.finished).toEqual(atOnce.slice(0, blocks.finished.length));
    expect(blocks.finished.length).toBeGreaterThan(atOnce.length / 2);
  });

  it("never changes a finished block, and cuts only the rest", () => {
    const seen: number[] = [];
    const cut = (rest: string) => {
      seen.push(rest.length);
      return parseMarkdownIntoBlocks(rest);
    };
    let blocks = noBlocks;
    let long = "";
    for (let paragraph = 0; paragraph < 200; paragraph += 1) {
      long += `Paragraph ${paragraph}.\n\n`;
      const next = cutBlocks(blocks, long, cut);
      expect(next.finished.slice(0, blocks.finished.length)).toEqual(blocks.finished);
      blocks = next;
    }
    expect(Math.max(...seen)).toBeLessThan(80);
  });

  it("starts anew when it is another text", () => {
    const blocks = cutBlocks(noBlocks, "one\n\ntwo\n\nthree\n\nfour", parseMarkdownIntoBlocks);
    expect(all(cutBlocks(blocks, "other", parseMarkdownIntoBlocks))).toEqual(["other"]);
  });
});
