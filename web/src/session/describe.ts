/** What a tool call is about, in one line. Pure. */
import type { TFunction } from "i18next";
import { relativePath } from "../lib/format";
import { asArray, asString, type Json } from "../wire/json";

export type ToolFamily =
  | "bash"
  | "read"
  | "edit"
  | "search"
  | "web"
  | "todo"
  | "question"
  | "plan"
  | "agent"
  | "mcp"
  | "other";

const families: Record<string, ToolFamily> = {
  Bash: "bash",
  BashOutput: "bash",
  KillShell: "bash",
  Read: "read",
  NotebookRead: "read",
  Edit: "edit",
  MultiEdit: "edit",
  Write: "edit",
  NotebookEdit: "edit",
  Grep: "search",
  Glob: "search",
  LS: "search",
  WebFetch: "web",
  WebSearch: "web",
  TodoWrite: "todo",
  TaskCreate: "todo",
  TaskUpdate: "todo",
  TaskList: "todo",
  AskUserQuestion: "question",
  ExitPlanMode: "plan",
  Task: "agent",
  Agent: "agent",
};

export function familyOf(name: string): ToolFamily {
  return families[name] ?? (name.startsWith("mcp__") ? "mcp" : "other");
}

/** Tools whose names were made for models have one for people in the catalogues. */
const named = [
  "AskUserQuestion",
  "BashOutput",
  "EnterPlanMode",
  "ExitPlanMode",
  "KillShell",
  "MultiEdit",
  "NotebookEdit",
  "NotebookRead",
  "Agent",
  "Task",
  "TaskCreate",
  "TaskList",
  "TaskUpdate",
  "TodoWrite",
  "ToolSearch",
  "WebFetch",
  "WebSearch",
] as const;

/** The name of a tool as people say it, for headings. */
export function toolName(t: TFunction, name: string): string {
  const known = named.find((each) => each === name);
  return known ? t(`tool.name.${known}`) : readableName(name);
}

/** `mcp__github__create_issue` is `github: create issue`, `BrandNew` is `Brand new`. */
export function readableName(name: string): string {
  const [prefix, server, ...rest] = name.split("__");
  if (prefix === "mcp" && server && rest.length > 0) return `${spaced(server)}: ${spaced(rest.join(" "))}`;
  return /^[A-Z][a-z]+(?:[A-Z][a-z]+)+$/.test(name)
    ? name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    : name;
}

const spaced = (words: string): string => words.replace(/[_-]+/g, " ").trim() || words;

const TELLING = [
  "command",
  "file_path",
  "notebook_path",
  "pattern",
  "query",
  "url",
  "path",
  "description",
  "subject",
  "prompt",
];

export function summarize(name: string, input: Json, cwd: string | undefined): string {
  const family = familyOf(name);
  if (family === "question") return firstLine(asString(questionsOf(input)[0]) ?? "");
  if (family === "agent") return firstLine(asString(input.description) ?? asString(input.prompt) ?? "");
  if (family === "plan") return "";
  // The command itself stands in the card; above it, what it is for.
  if (family === "bash" && asString(input.description)) return firstLine(asString(input.description) ?? "");
  for (const key of TELLING) {
    const value = asString(input[key]);
    if (value) return firstLine(key.endsWith("path") ? relativePath(value, cwd) : value);
  }
  return "";
}

function questionsOf(input: Json): unknown[] {
  return asArray(input.questions).map((each) =>
    typeof each === "object" && each !== null ? (each as Json).question : undefined,
  );
}

function firstLine(text: string): string {
  const trimmed = text.trim();
  const end = trimmed.indexOf("\n");
  return end < 0 ? trimmed : `${trimmed.slice(0, end)} …`;
}
