import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { describe, expect, it } from "vitest";
import en from "./en.json";
import { pickLanguage } from ".";
import zhCN from "./zh-CN.json";

const PLURAL = /_(zero|one|two|few|many|other)$/;
const sources = join(import.meta.dirname, "..");

function flatten(value: object, path = ""): Map<string, string> {
  const all = new Map<string, string>();
  for (const [name, each] of Object.entries(value)) {
    const key = path ? `${path}.${name}` : name;
    if (typeof each === "string") all.set(key, each);
    else for (const [inner, text] of flatten(each as object, key)) all.set(inner, text);
  }
  return all;
}

const placeholders = (text: string) => [...text.matchAll(/{{(\w+)}}/g)].map((match) => match[1]).toSorted();
const stems = (catalogue: Map<string, string>) =>
  new Set([...catalogue.keys()].map((key) => key.replace(PLURAL, "")));

const english = flatten(en);
const chinese = flatten(zhCN);

function sourceFiles(): string[] {
  return readdirSync(sources, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name) && !name.startsWith("gen/"))
    .map((name) => join(sources, name));
}

describe("the two catalogues", () => {
  it("have the same keys", () => {
    expect([...stems(chinese)].toSorted()).toEqual([...stems(english)].toSorted());
  });

  it.each([
    ["en", english],
    ["zh-CN", chinese],
  ])("have every plural form that %s needs", (language, catalogue) => {
    const needed = new Intl.PluralRules(language).resolvedOptions().pluralCategories.toSorted();
    const forms = new Map<string, string[]>();
    for (const key of catalogue.keys()) {
      const form = PLURAL.exec(key)?.[1];
      if (form) forms.set(key.replace(PLURAL, ""), [...(forms.get(key.replace(PLURAL, "")) ?? []), form]);
    }
    for (const [key, given] of forms) expect(given.toSorted(), key).toEqual(needed);
  });

  it("fill in the same things", () => {
    for (const [key, text] of chinese) {
      const other = english.get(key) ?? english.get(key.replace(PLURAL, "_other")) ?? "";
      expect(placeholders(text), key).toEqual(placeholders(other));
    }
  });

  it("say nothing empty, and Chinese is Chinese", () => {
    for (const [key, text] of [...english, ...chinese]) expect(text.trim(), key).not.toBe("");
    const names = /^(app\.|diff\.|init\.version|preferences\.languages)/;
    for (const [key, text] of chinese) if (!names.test(key)) expect(text, key).toMatch(/\p{Script=Han}/u);
  });

  it("use one term for one thing", () => {
    // The page for agents has the name that users of Claude Code know it by.
    const others = /代理|令牌|(?<!MCP )\bAgent\b(?! 监控)/;
    for (const [key, text] of chinese) expect(text, key).not.toMatch(others);
    for (const [key, text] of english)
      expect(text, key).not.toMatch(/\bwhoever\b|\bspoken with\b|\bthink better\b/i);
  });

  it("contain nothing that is not used", () => {
    const code = sourceFiles()
      .map((file) => readFileSync(file, "utf8"))
      .join("\n");
    for (const key of stems(english)) {
      const parts = key.split(".");
      // A key is written out, or its stem is, with the rest chosen at run time.
      const written =
        code.includes(`"${key}"`) ||
        parts.some((_, at) => code.includes(`\`${parts.slice(0, at).join(".")}.\${`));
      expect(written, key).toBe(true);
    }
  });
});

describe("the source", () => {
  it("has no text of its own", () => {
    const found = sourceFiles()
      .filter((file) => file.endsWith(".tsx"))
      .flatMap((file) =>
        hardCoded(readFileSync(file, "utf8")).map((text) => `${file.slice(sources.length)}: ${text}`),
      );
    expect(found).toEqual([]);
  });

  it("would be caught having some", () => {
    expect(
      hardCoded('const a = <p title="Hello there">Some words{x ? "More words" : `and ${y} these`}</p>;'),
    ).toEqual(["More words", "and  these", "Hello there", "Some words"]);
    expect(hardCoded('const a = <p className="not text" key="k">{t("a.b")} · <Kbd>Y</Kbd></p>;')).toEqual([]);
  });
});

describe("pickLanguage", () => {
  it.each([
    ["zh-CN", ["en"], "zh-CN"],
    [undefined, ["zh-TW", "en"], "zh-CN"],
    [undefined, ["fr", "en-GB", "zh"], "en"],
    ["tlh", ["fr"], "en"],
  ] as const)("stored %s, preferred %s: %s", (stored, preferred, language) => {
    expect(pickLanguage(stored, preferred)).toBe(language);
  });
});

/** Attributes whose value people read or hear. */
const READ = new Set([
  "aria-label",
  "aria-description",
  "title",
  "placeholder",
  "alt",
  "label",
  "description",
  "hint",
]);
/** At least two letters in a row: single ones are key names and separators. */
const WORDS = /\p{L}{2}/u;

interface Node {
  type: string;
  [field: string]: unknown;
}

/** The text that a component shows by itself: JSX text, readable attributes, and strings among JSX children. */
function hardCoded(code: string): string[] {
  const found: string[] = [];
  const keep = (text: string) => WORDS.test(text) && found.push(text.trim());

  function strings(node: Node): void {
    if (node.type === "Literal" && typeof node.value === "string") keep(node.value);
    if (node.type === "TemplateLiteral")
      keep((node.quasis as { value: { raw: string } }[]).map((each) => each.value.raw).join(""));
    if (node.type === "ConditionalExpression")
      for (const side of [node.consequent, node.alternate]) strings(side as Node);
    if (node.type === "LogicalExpression") for (const side of [node.left, node.right]) strings(side as Node);
  }

  function walk(value: unknown): void {
    if (Array.isArray(value)) {
      for (const each of value) walk(each);
      return;
    }
    if (typeof value !== "object" || value === null) return;
    const node = value as Node;
    if (node.type === "JSXText") keep(node.value as string);
    if (node.type === "JSXAttribute" && READ.has((node.name as { name: string }).name)) {
      const given = node.value as Node | null;
      if (given) strings(given.type === "JSXExpressionContainer" ? (given.expression as Node) : given);
    }
    if (node.type === "JSXElement" || node.type === "JSXFragment") {
      for (const child of node.children as Node[])
        if (child.type === "JSXExpressionContainer") strings(child.expression as Node);
    }
    for (const [name, each] of Object.entries(node)) if (name !== "type") walk(each);
  }

  walk(parseAst(code, { lang: "tsx" }));
  return found;
}
