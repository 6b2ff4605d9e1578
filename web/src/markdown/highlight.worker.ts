/** Turns code into coloured tokens, off the page's thread. Regular expressions run in the browser's own engine: no wasm. */
import { createHighlighterCore, type HighlighterCore, type LanguageRegistration } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import type { HighlightAnswer, HighlightRequest, TokenLine } from "./highlight";

const languages: Record<string, () => Promise<{ default: LanguageRegistration[] }>> = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  jsx: () => import("shiki/langs/jsx.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
};

const aliases: Record<string, string> = {
  "c#": "csharp",
  "c++": "cpp",
  cs: "csharp",
  dockerfile: "docker",
  h: "c",
  hpp: "cpp",
  htm: "html",
  js: "javascript",
  jsonc: "json",
  kt: "kotlin",
  makefile: "make",
  md: "markdown",
  mjs: "javascript",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  ts: "typescript",
  yml: "yaml",
  zsh: "bash",
};

/** The light theme's comments are too pale for our background. */
const colorReplacements = { "github-light-default": { "#6e7781": "#57606a" } };

let highlighter: Promise<HighlighterCore> | undefined;

function ready(): Promise<HighlighterCore> {
  highlighter ??= createHighlighterCore({
    themes: [import("shiki/themes/github-light-default.mjs"), import("shiki/themes/github-dark-default.mjs")],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  return highlighter;
}

async function tokenize(code: string, named: string): Promise<TokenLine[] | undefined> {
  const lower = named.toLowerCase();
  const language = aliases[lower] ?? lower;
  const load = languages[language];
  if (!load) return undefined;
  const shiki = await ready();
  if (!shiki.getLoadedLanguages().includes(language)) await shiki.loadLanguage(load());
  const { tokens } = shiki.codeToTokens(code, {
    lang: language,
    themes: { light: "github-light-default", dark: "github-dark-default" },
    defaultColor: "light-dark()",
    colorReplacements,
  });
  return tokens.map((line) =>
    line.map((token) => ({ text: token.content, color: token.htmlStyle?.color ?? token.color ?? "inherit" })),
  );
}

addEventListener("message", ({ data }: MessageEvent<HighlightRequest>) => {
  tokenize(data.code, data.language).then(
    (lines) => postMessage({ id: data.id, lines } satisfies HighlightAnswer),
    // A grammar that fails leaves the code as it is: plain, and readable.
    () => postMessage({ id: data.id, lines: undefined } satisfies HighlightAnswer),
  );
});
