/**
 * Markdown as it is written. The text is cut into blocks; a finished block keeps its rendering, only the last one is
 * parsed again as words arrive.
 *
 * Raw HTML stays text (the plugin that would parse it is left out), images are not loaded from anywhere, and links
 * lead to http, https and mailto only.
 */
import { type ComponentProps, createContext, isValidElement, memo, use, useState } from "react";
import {
  type Components,
  defaultRehypePlugins,
  defaultRemarkPlugins,
  type ExtraProps,
  parseMarkdownIntoBlocks,
  Streamdown,
} from "streamdown";
import remarkMath from "remark-math";
import { type Blocks, cutBlocks, noBlocks } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { DiagramView } from "./DiagramView";
import { safeLink } from "./links";
import { looksLikeFormula, mayHaveMath } from "./math";
import { MathView } from "./MathView";

type Props<Tag extends keyof React.JSX.IntrinsicElements> = ComponentProps<Tag> & ExtraProps;

function Link({ href, children }: Props<"a">) {
  const address = safeLink(href);
  if (!address) return <span>{children}</span>;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

/** A picture from elsewhere would tell its host that this answer was read. Its description takes its place. */
function Picture({ alt, src }: Props<"img">) {
  return <span className="text-ink-3">[{alt || (typeof src === "string" ? src : "")}]</span>;
}

/** Around Markdown that is still being written: an unfinished diagram is not drawn. */
const Unfinished = createContext(false);

/** A fenced block: the parser puts its text and its language into a single `code` inside. */
function Pre({ children }: Props<"pre">) {
  const unfinished = use(Unfinished);
  if (!isValidElement<Props<"code">>(children)) return <pre>{children}</pre>;
  const { className, children: code } = children.props;
  const language = /language-([\w+#-]+)/.exec(className ?? "")?.[1];
  if (language === "math" && typeof code === "string") return <MathView tex={code.trim()} display />;
  if (language === "mermaid" && typeof code === "string" && !unfinished)
    return <DiagramView source={code.trim()} />;
  return <CodeBlock code={typeof code === "string" ? code.replace(/\n$/, "") : ""} language={language} />;
}

function Code({ className, children }: Props<"code">) {
  if (className?.includes("language-math") && typeof children === "string") {
    return looksLikeFormula(children) ? <MathView tex={children} display={false} /> : `$${children}$`;
  }
  return <code>{children}</code>;
}

function Table({ children }: Props<"table">) {
  return (
    // Wide tables scroll inside the answer; the focus makes that possible without a mouse.
    <div className="overflow-x-auto rounded-lg border border-line" tabIndex={0}>
      <table dir="auto" className="w-full border-collapse text-sm">
        {children}
      </table>
    </div>
  );
}

/** From how many columns of text on a cell gets room. Chinese characters are as wide as two letters. */
const PHRASE_COLUMNS = 14;
const SENTENCE_COLUMNS = 26;

function Cell({ node, ...rest }: Props<"td">) {
  const columns = columnsOf(node);
  const prose = columns >= SENTENCE_COLUMNS ? "sentence" : columns >= PHRASE_COLUMNS ? "phrase" : undefined;
  return <td data-prose={prose} {...rest} />;
}

type Content = { readonly type: string; readonly value?: string; readonly children?: readonly Content[] };

function columnsOf(node: unknown): number {
  const { value, children } = node as Content;
  if (value !== undefined) return value.length + (value.match(/[\u2e80-\uffff]/g)?.length ?? 0);
  return (children ?? []).reduce((sum, child) => sum + columnsOf(child), 0);
}

type PlainTag = "p" | "ul" | "ol" | "li" | "blockquote" | "hr" | "strong" | "thead" | "tbody" | "tr" | "th";

/**
 * The plain element, without the renderer's own classes. `dir`: its bullets, or its edge, stand on the side where its words
 * begin. Its paragraphs find their direction by style, because an element with a `dir` of its own would not count for that.
 */
function plain<Tag extends PlainTag>(Element: Tag, dir?: "auto") {
  return function Plain({ node: _node, ...rest }: Props<Tag>) {
    const Component = Element as React.ElementType;
    return <Component dir={dir} {...rest} />;
  };
}

/**
 * Answers begin at any rank and skip some. Below the page's own heading they are all of one; their size tells the rest.
 */
function heading(rank: number) {
  return function Heading({ children }: Props<"h2">) {
    return <h2 data-rank={rank}>{children}</h2>;
  };
}

const components = {
  a: Link,
  img: Picture,
  pre: Pre,
  code: Code,
  table: Table,
  p: plain("p"),
  h1: heading(1),
  h2: heading(2),
  h3: heading(3),
  h4: heading(4),
  h5: heading(5),
  h6: heading(6),
  ul: plain("ul", "auto"),
  ol: plain("ol", "auto"),
  li: plain("li"),
  blockquote: plain("blockquote", "auto"),
  hr: plain("hr"),
  strong: plain("strong"),
  thead: plain("thead"),
  tbody: plain("tbody"),
  tr: plain("tr"),
  th: plain("th"),
  td: Cell,
} as Components;

const rehypePlugins = [defaultRehypePlugins.sanitize, defaultRehypePlugins.harden].filter(
  (plugin) => plugin !== undefined,
);

const plainPlugins = Object.values(defaultRemarkPlugins);
const mathPlugins = [...plainPlugins, remarkMath];
const pluginsFor = (text: string) => (mayHaveMath(text) ? mathPlugins : plainPlugins);

/** A block that will not change any more. */
const FinishedBlock = memo(function FinishedBlock({ text }: { text: string }) {
  return (
    <Streamdown {...settings} remarkPlugins={pluginsFor(text)} mode="static">
      {text}
    </Streamdown>
  );
});

const settings = {
  className: "answer-block",
  controls: false,
  components,
  rehypePlugins,
  linkSafety: { enabled: false },
} as const;

/** How many finished blocks are one piece of the page: what is written below has it neither laid out nor painted again. */
const PART = 16;

const Part = memo(
  function Part({ blocks }: { blocks: readonly string[] }) {
    return (
      <div className="answer-part">
        {blocks.map((block, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- blocks are only ever added at the end
          <FinishedBlock key={index} text={block} />
        ))}
      </div>
    );
  },
  (before, after) =>
    before.blocks.length === after.blocks.length &&
    before.blocks.every((block, index) => block === after.blocks[index]),
);

/** All of them: the list is the same until one more is finished. */
const Finished = memo(function Finished({ blocks }: { blocks: readonly string[] }) {
  return Array.from({ length: Math.ceil(blocks.length / PART) }, (_, part) => (
    // oxlint-disable-next-line react/no-array-index-key -- parts are only ever added at the end
    <Part key={part} blocks={blocks.slice(part * PART, (part + 1) * PART)} />
  ));
});

export interface MarkdownProps {
  text: string;
  /** Still being written. */
  live?: boolean;
}

export default function StreamedMarkdown({ text, live = false }: MarkdownProps) {
  const blocks = useBlocks(text);
  const finished = live ? blocks.finished : [...blocks.finished, ...parseMarkdownIntoBlocks(blocks.tail)];
  return (
    <div className="prose-answer">
      <Finished blocks={finished} />
      {live && (
        <Unfinished value>
          <Streamdown
            {...settings}
            remarkPlugins={pluginsFor(blocks.tail)}
            mode="streaming"
            parseIncompleteMarkdown
            isAnimating
          >
            {blocks.tail}
          </Streamdown>
        </Unfinished>
      )}
    </div>
  );
}

/** Remembers what was cut before, so that only the end of a growing text is cut again. */
function useBlocks(text: string): Blocks {
  const [blocks, setBlocks] = useState(() => cutBlocks(noBlocks, text, parseMarkdownIntoBlocks));
  if (blocks.text === text) return blocks;
  const next = cutBlocks(blocks, text, parseMarkdownIntoBlocks);
  setBlocks(next);
  return next;
}
