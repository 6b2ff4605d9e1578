/** Folders import in one direction, and no file imports itself through others. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

/** From the bottom to the top: a folder may import from itself and from what stands before it. */
const LAYERS = [
  "gen",
  "lib",
  "wire",
  "i18n",
  "session",
  "store",
  "ui",
  "markdown",
  "tools",
  "features/decisions",
  "features/hooks",
  "features/settings",
  "features/panel",
  "features/conversation",
  "features/history",
  "features/start",
  "features/pages",
  "features/access",
  "features/palette",
  "frame",
  // App.tsx and main.tsx
  ".",
];

/** The imports of each file, by its path without the ending. */
type Graph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']*)["']/g;

/** The text of each file, tests left out. */
function readSources(root: string): ReadonlyMap<string, string> {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file));
  return new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
}

function graphOf(sources: ReadonlyMap<string, string>): Graph {
  const names = new Set([...sources.keys()].map(withoutEnding));
  return new Map(
    [...sources].map(([file, text]) => {
      const imports = [...text.matchAll(IMPORT)].flatMap(([, written = ""]) => {
        const target = withoutEnding(join(dirname(file), written.replace(/\?.*$/, "")).replaceAll("\\", "/"));
        // Styles, catalogues and the like are no modules of ours.
        return [target, `${target}/index`].filter((name) => names.has(name));
      });
      return [withoutEnding(file), imports] as const;
    }),
  );
}

const withoutEnding = (file: string) => file.replace(/\.tsx?$/, "");

function layerOf(file: string): number {
  const folder = dirname(file);
  return LAYERS.findIndex((layer) => layer === folder || (layer !== "." && folder.startsWith(`${layer}/`)));
}

function violations(graph: Graph): string[] {
  const found = [];
  for (const [file, imports] of graph) {
    if (layerOf(file) === -1) found.push(`${file} is in no layer`);
    for (const target of imports)
      if (layerOf(target) > layerOf(file)) found.push(`${file} imports ${target}, which is above it`);
  }
  return found;
}

/** The files of each cycle, in the order of their imports. */
function cycles(graph: Graph): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  function visit(file: string, path: readonly string[]): void {
    const at = path.indexOf(file);
    if (at !== -1) found.push([...path.slice(at), file].join(" → "));
    if (at !== -1 || done.has(file)) return;
    for (const target of graph.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  }
  for (const file of graph.keys()) visit(file, []);
  return found;
}

/** Words that only messages of agents have, and the readers of JSON that belongs to someone else. */
const FOREIGN = [
  /\b(?:parent_)?tool_use_id\b/,
  /\b(?:tool_use_result|stream_event|content_block|tool_result|num_turns|total_cost_usd)\b/,
  /\b(?:mcp_servers|slash_commands|rate_limit_info|structuredPatch\??[:.])/,
  /import \{(?! type Json \})[^}]*\} from "[./]*\/wire\/json"/,
  /from "[./]*\/gen\/messages"/,
];

/** What agents say is read in `session`, so that the rest of the page knows its own types only. */
function foreignReaders(sources: ReadonlyMap<string, string>): string[] {
  return [...sources]
    .filter(([file]) => !/^(?:gen|wire|session)\//.test(file))
    .flatMap(([file, text]) =>
      FOREIGN.flatMap((words) => words.exec(text)?.[0] ?? []).map((words) => `${file}: ${words}`),
    );
}

describe("the source", () => {
  const sources = readSources(import.meta.dirname);
  const graph = graphOf(sources);

  it("is read whole", () => {
    expect(graph.get("main")).toContain("App");
    expect(graph.get("store/controller")).toContain("session/log");
    expect(graph.get("frame/pages")).toContain("features/history/HistoryPage");
  });

  it("imports in one direction", () => {
    expect(violations(graph)).toEqual([]);
  });

  it("has no cycles", () => {
    expect(cycles(graph)).toEqual([]);
  });

  it("reads what agents say in one folder", () => {
    expect(foreignReaders(sources)).toEqual([]);
  });
});

describe("the checks", () => {
  it("find a reader of messages outside of its folder", () => {
    const found = foreignReaders(
      new Map([
        ["session/log.ts", 'import { asString } from "../wire/json"; message.parent_tool_use_id'],
        ["tools/views.tsx", 'import type { Json } from "../wire/json";'],
        ["features/panel/List.tsx", 'import { asString } from "../../wire/json"; init.mcp_servers'],
      ]),
    );
    expect(found).toEqual([
      "features/panel/List.tsx: mcp_servers",
      'features/panel/List.tsx: import { asString } from "../../wire/json"',
    ]);
  });

  it("find an import from below to above", () => {
    expect(
      violations(
        new Map([
          ["session/log", ["store/state"]],
          ["store/state", ["session/log"]],
          ["features/hooks/HookCalls", ["features/conversation/rows"]],
          ["ui/Button", ["lib/cn"]],
        ]),
      ),
    ).toEqual([
      "session/log imports store/state, which is above it",
      "features/hooks/HookCalls imports features/conversation/rows, which is above it",
    ]);
  });

  it("find a folder that nobody has placed", () => {
    expect(violations(new Map([["widgets/Clock", []]]))).toEqual(["widgets/Clock is in no layer"]);
  });

  it("find a cycle inside a folder", () => {
    expect(
      cycles(
        new Map([
          ["store/a", ["store/b"]],
          ["store/b", ["store/c"]],
          ["store/c", ["store/b"]],
        ]),
      ),
    ).toEqual(["store/b → store/c → store/b"]);
  });
});
