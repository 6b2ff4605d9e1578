/** What a tool was called with and what came of it, for each family of tools. Pure. */
import type { Todo } from "../gen/messages";
import { asObject, asObjects, asString, type Json } from "../wire/json";
import type { ToolItem } from "./items";

type Call = Pick<ToolItem, "input" | "output" | "details">;

export interface ShellCall {
  readonly command: string | undefined;
  /** What the command is for, in the agent's words. */
  readonly description: string | undefined;
  readonly output: string | undefined;
  readonly errorOutput: string | undefined;
}

export function shellCallOf({ input, output, details }: Call): ShellCall {
  const stdout = asString(details?.stdout);
  const errorOutput = asString(details?.stderr);
  return {
    command: asString(input.command),
    description: asString(input.description),
    output: stdout === undefined && errorOutput === undefined ? output : stdout,
    errorOutput,
  };
}

/** The file that a tool reads or changes. */
export const pathOf = (input: Json): string | undefined =>
  asString(input.file_path) ?? asString(input.notebook_path);

/** The agent numbers the lines that it read; the number and its arrow or tab are not part of the file. */
const NUMBERED = /^\s*\d+(?:→|\t)/;

/** The lines of a file that was read. */
export function linesRead({ output, details }: Call): string[] {
  const content = asString(asObject(details?.file)?.content);
  if (content !== undefined) return content.split("\n");
  return (output ?? "").split("\n").map((line) => line.replace(NUMBERED, ""));
}

/** What the user was asked, and what they said. */
export function answersOf({
  input,
  details,
}: Call): (readonly [question: string, answer: string])[] | undefined {
  const answers = asObject(details?.answers) ?? asObject(input.answers);
  return (
    answers &&
    Object.entries(answers).map(
      ([question, answer]) => [question, asString(answer) ?? JSON.stringify(answer)] as const,
    )
  );
}

export const planOf = (...sources: readonly (Json | undefined)[]): string | undefined =>
  sources.map((source) => asString(source?.plan)).find((plan) => plan !== undefined);

/** What a subagent was asked. */
export const taskPromptOf = ({ input }: Pick<Call, "input">): string | undefined => asString(input.prompt);

/** The list that a call of TodoWrite writes. */
export function todosWritten({ input }: Pick<Call, "input">): Todo[] {
  return asObjects(input.todos).map(({ content, status }) => ({
    content: asString(content) ?? "",
    status: status === "completed" || status === "in_progress" ? status : "pending",
  }));
}

/** An edit says that it replaces one occurrence only, as its difference shows. */
export const replacesOnce = (input: Json): boolean => input.replace_all === false;

/** The parts of an input that say by themselves what is to be done. */
export function exactParts(input: Json): { command?: string; url?: string; path?: string } {
  return { command: asString(input.command), url: asString(input.url), path: pathOf(input) };
}

/** Short values of an input, by name. */
export function shortValues(input: Json): (readonly [name: string, value: string])[] {
  return Object.entries(input).flatMap(([name, value]) =>
    ["string", "number", "boolean"].includes(typeof value) ? [[name, String(value)] as const] : [],
  );
}
