import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import StreamedMarkdown from "./StreamedMarkdown";

const render = (text: string, live = false) =>
  renderToStaticMarkup(<StreamedMarkdown text={text} live={live} />);

describe("what an answer may contain", () => {
  it("shows HTML as text", () => {
    const html = render(
      'before <img src=x onerror="alert(1)"> <script>alert(1)</script>\n\n<iframe src="https://x"></iframe>',
    );
    expect(html).not.toMatch(/<(img|script|iframe)/);
    expect(html).toContain("before");
  });

  it("loads no pictures", () => {
    const html = render("![a cat](https://example.com/cat.png) ![b](data:image/svg+xml,x)");
    expect(html).not.toContain("<img");
    expect(html).toContain("a cat");
  });

  it("links only to where it is safe, without telling where from", () => {
    const html = render("[ok](https://example.com) [bad](javascript:alert(1)) [home](/api/system)");
    expect(html.match(/href="[^"]*"/g)).toEqual(['href="https://example.com/"']);
    expect(html).toContain('rel="noopener noreferrer"');
    expect(html).toContain("bad");
  });

  it("writes no style into the page", () => {
    expect(
      render("# a\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n- [x] done\n\n```rust\nfn main() {}\n```"),
    ).not.toMatch(/<style|style=/);
  });

  it("ranks headings below the page's own", () => {
    expect(render("# Title\n\n### Part")).toMatch(/<h2 data-rank="1">Title.*<h2 data-rank="3">Part/);
  });

  it("closes what the stream has not closed yet", () => {
    expect(render("some **bold", true)).toContain("<strong>bold</strong>");
  });

  it("takes formulas for formulas and prices for prices", () => {
    expect(render("so $e^{x}$ it is")).toContain("<span>e^{x}</span>");
    expect(render("$$\nx^2\n$$")).toContain('text-center">x^2</span>');
    expect(render("from $5 and $10 on")).toContain("from $5 and $10 on");
  });
});

describe("how an answer is laid out", () => {
  it("gives long cells of a table room, in any script, and short ones none", () => {
    const html = render(
      "| a | b | c |\n| - | - | - |\n| short | rather longer words | 这个单元格里有一句完整的话 |",
    );
    expect(html.match(/<td[^>]*>/g)).toEqual([
      "<td>",
      '<td data-prose="phrase">',
      '<td data-prose="sentence">',
    ]);
  });

  it("keeps the direction of lists, quotes and tables with their words", () => {
    const html = render("- אחת\n\n> שתיים\n\n| ג |\n| - |\n| ד |");
    expect(html.match(/<(ul|blockquote|table) [^>]*dir="auto"/g)).toHaveLength(3);
    // Otherwise their words would not count for the list around them.
    expect(html).not.toMatch(/<(p|li|td) [^>]*dir=/);
  });

  it("marks tasks at every depth", () => {
    const html = render("- [x] done\n  - [ ] inside\n- plain");
    expect(html.match(/<li class="task-list-item"/g)).toHaveLength(2);
    expect(html.match(/<input[^>]*>/g)).toHaveLength(2);
  });
});
