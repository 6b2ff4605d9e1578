/** From the messages of a transcript to the entries that the conversation is drawn from. */
import type { Message } from "../gen/history";
import { asObject, asString, type Json } from "../wire/json";
import { type Entry, messageEntry } from "./entries";
import { contentText } from "./message";

/** Room for the entries of one message between those of its neighbours. */
const STEP = 4;

/** `first` is the number of the first message in its session, so that entries keep their order when others come before. */
export function entriesOf(messages: readonly Message[], first: number): Entry[] {
  return messages.flatMap((message, index) => entriesOfMessage(message, (first + index + 1) * STEP));
}

/** The place of the message that an entry came from. */
export const messageIndex = (seq: number, first: number): number => Math.floor(seq / STEP) - 1 - first;

function entriesOfMessage(message: Message, seq: number): Entry[] {
  if (message.is_meta) return [];
  const wire = (body: Json): Entry =>
    messageEntry(seq, { parent_tool_use_id: message.parent_tool_use_id, uuid: message.uuid, ...body });
  if (message.compaction) {
    const summary = contentText(message.content);
    return [messageEntry(seq, { type: "system", subtype: "compact_boundary", summary })];
  }
  if (message.role === "assistant") {
    const id = message.message_id ?? message.uuid;
    return [wire({ type: "assistant", message: { id, model: message.model, content: message.content } })];
  }
  const isResult = message.content.some((block) => block.type === "tool_result");
  if (isResult || message.sidechain) {
    return [
      wire({
        type: "user",
        message: { content: message.content },
        tool_use_result: message.patch && {
          filePath: message.patch.file_path,
          structuredPatch: message.patch.structured_patch,
        },
      }),
    ];
  }
  const text = typed(contentText(message.content));
  return text === "" ? [] : [{ kind: "prompt", seq, prompt: text }];
}

const COMMAND = /<command-name>([\s\S]*?)<\/command-name>/;
const ARGUMENTS = /<command-args>([\s\S]*?)<\/command-args>/;

/** A slash command is shown as it was typed, not as the CLI wraps it. */
function typed(text: string): string {
  const command = COMMAND.exec(text)?.[1]?.trim();
  if (!command) return text.trim();
  return `${command} ${ARGUMENTS.exec(text)?.[1]?.trim() ?? ""}`.trim();
}

export interface WholeResult {
  readonly name: string;
  readonly size: number;
}

/** Results of which the message has only the beginning. */
export function wholeResults(message: Message): WholeResult[] {
  return message.content.flatMap((block) => {
    const persisted = asObject(block.persisted_output);
    const name = asString(persisted?.name);
    return name ? [{ name, size: Number(persisted?.size) || 0 }] : [];
  });
}
