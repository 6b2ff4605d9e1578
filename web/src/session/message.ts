/**
 * Types the messages of agents. The types are generated and describe usual messages; an agent may write anything. So a message
 * is typed by its tag alone, and every value in it is checked when it is read (`wire/json`): a value that is absent, `null` or
 * of another type counts as absent, and nothing here throws.
 */
import type { AgentMessage, Block, MediaBlock, TurnResult, Usage } from "../gen/messages";
import { asArray, asNumber, asObject, asObjects, asString } from "../wire/json";

export type { AgentMessage, Block } from "../gen/messages";

/** A message of an agent. If it has no type, its type is `unknown`. */
export function readMessage(said: unknown): AgentMessage {
  const message = asObject(said);
  // A tag that the types don't have falls into the default case of every `switch`.
  return message && typeof message.type === "string" ? (message as AgentMessage) : { type: "unknown" };
}

/** The tool call of the subagent that wrote the message. */
export const parentOf = (message: AgentMessage): string | undefined => asString(message.parent_tool_use_id);

/** The id of a model's message, the same on all of its lines. */
export const messageIdOf = (message: AgentMessage): string | undefined =>
  message.type === "assistant" ? asString(message.message?.id) : undefined;

/** The blocks of a content; none for a mere text. */
export const blocksOf = (content: unknown): readonly Block[] => asObjects(content) as unknown as Block[];

/** The text of a content, which is a text or a list of blocks. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return blocksOf(content)
    .flatMap((block) => (block.type === "text" ? (asString(block.text) ?? []) : []))
    .join("\n");
}

/** The images of a content, as data: addresses. */
export function imagesOf(content: unknown): string[] {
  return blocksOf(content).flatMap((block) => (block.type === "image" ? (imageAddress(block) ?? []) : []));
}

function imageAddress({ source }: MediaBlock): string | undefined {
  const type = asString(source?.media_type);
  const data = asString(source?.data);
  if (!data || !/^image\/(png|jpeg|gif|webp)$/.test(type ?? "")) return undefined;
  return `data:${type};base64,${data}`;
}

export interface Tokens {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly cached: number | undefined;
}

export function tokensOf(usage: Usage | null | undefined): Tokens {
  const cached = [usage?.cache_read_input_tokens, usage?.cache_creation_input_tokens].flatMap(
    (part) => asNumber(part) ?? [],
  );
  return {
    input: asNumber(usage?.input_tokens),
    output: asNumber(usage?.output_tokens),
    cached: cached.length > 0 ? cached.reduce((sum, part) => sum + part) : undefined,
  };
}

/** The errors of a turn, as the agent reported them. */
export function problemsOf(result: TurnResult): string[] {
  const listed = asArray(result.errors).flatMap((each) => asString(each) ?? []);
  const said = asString(result.result);
  return listed.length > 0 ? listed : said ? [said] : [];
}
