/** What the list of a conversation shows, from top to bottom. Pure, and cheap enough to run once a frame. */
import type { RewoundRange, SessionStatus } from "../gen/events";
import { familyOf } from "./describe";
import type { Item, ToolItem } from "./items";
import type { Decided, Decision, SessionLog } from "./log";
import type { QueuedPrompt } from "./prompts";

export interface ItemRow {
  readonly kind: "item";
  readonly key: string;
  readonly item: Item;
  /** What a subagent said and did, for the tool call that started it. */
  readonly children: readonly Item[];
  readonly decision: Decision | undefined;
  readonly decided: Decided | undefined;
}

export type Row =
  | ItemRow
  /** Calls that only looked at something, one after the other. */
  | { readonly kind: "group"; readonly key: string; readonly rows: readonly (ItemRow & { item: ToolItem })[] }
  | { readonly kind: "decision"; readonly key: string; readonly decision: Decision }
  | {
      readonly kind: "queued" | "kept";
      readonly key: string;
      readonly prompt: QueuedPrompt;
      /** All that waits. */
      readonly queue: readonly QueuedPrompt[];
    }
  /** Stands for what the conversation no longer has. */
  | { readonly kind: "rewound"; readonly key: string; readonly prompts: number; readonly newest: boolean }
  | { readonly kind: "sending"; readonly key: string; readonly prompt: string }
  | { readonly kind: "working"; readonly key: "working" };

const NO_CHILDREN: readonly Item[] = [];

/** `sending`: prompts that the server has not acknowledged yet. */
export function projectRows(
  log: SessionLog,
  status: SessionStatus,
  sending: readonly QueuedPrompt[] = [],
  rewound: readonly RewoundRange[] = [],
): Row[] {
  const items = withEdits(log.transcript.items, log.decided);
  const children = childrenByParent(items);
  const waiting = new Map(
    [...log.decisions.values()].map((decision) => [decision.request.toolUseId, decision]),
  );
  const rows: Row[] = [];
  for (const item of items) {
    if (item.parent !== undefined && children.has(item.parent)) continue;
    if (isEmpty(item)) continue;
    if (rewound.length > 0) {
      const part = rewound.find((each) => isWithin(each, item.seqs[0] ?? 0));
      if (part) {
        putAway(rows, part, item, part === rewound.at(-1));
        continue;
      }
    }
    const toolUseId = item.kind === "tool" ? item.toolUseId : undefined;
    const decision = toolUseId === undefined ? undefined : waiting.get(toolUseId);
    if (toolUseId !== undefined) waiting.delete(toolUseId);
    rows.push({
      kind: "item",
      key: item.key,
      item,
      children: (toolUseId !== undefined && children.get(toolUseId)) || NO_CHILDREN,
      decision,
      decided: toolUseId === undefined ? undefined : log.decided.get(toolUseId),
    });
  }
  // A request whose tool call is not on this page, or belongs to a subagent, is asked all the same.
  for (const decision of waiting.values()) {
    rows.push({ kind: "decision", key: `d${decision.request.requestId}`, decision });
  }
  if (status === "running" && log.decisions.size === 0 && !isWriting(items.at(-1))) {
    rows.push({ kind: "working", key: "working" });
  }
  // A stop keeps the queue: it goes on after the next message.
  const kind = status === "running" ? "queued" : "kept";
  for (const prompt of log.queue) rows.push({ kind, key: `q${prompt.promptId}`, prompt, queue: log.queue });
  for (const { promptId, prompt } of sending) rows.push({ kind: "sending", key: `s${promptId}`, prompt });
  return rows;
}

/** Each call once for each edit: rows are compared by identity. */
const edits = new WeakMap<ToolItem, { readonly input: Decided["editedInput"]; readonly item: ToolItem }>();

/** The calls as they ran: with what a person put in place of what the agent had asked for. */
function withEdits(items: readonly Item[], decided: ReadonlyMap<string, Decided>): readonly Item[] {
  if (![...decided.values()].some(({ editedInput }) => editedInput)) return items;
  return items.map((item) => {
    const input = item.kind === "tool" ? decided.get(item.toolUseId)?.editedInput : undefined;
    // The answers to a question are given in its input; that is no edit.
    if (item.kind !== "tool" || !input || ["question", "plan"].includes(familyOf(item.name))) return item;
    const known = edits.get(item);
    if (known?.input === input) return known.item;
    const edited = { ...item, input, asked: item.input };
    edits.set(item, { input, item: edited });
    return edited;
  });
}

const isWithin = ({ afterSeq, throughSeq }: RewoundRange, seq: number): boolean =>
  afterSeq < seq && seq <= throughSeq;

/** One row for the whole part, which counts what was asked in it. */
function putAway(rows: Row[], part: RewoundRange, item: Item, newest: boolean): void {
  const key = `w${part.afterSeq}`;
  const last = rows.at(-1);
  const known = last?.kind === "rewound" && last.key === key ? last : undefined;
  const prompts = (known?.prompts ?? 0) + Number(item.kind === "prompt");
  if (known) rows.pop();
  rows.push({ kind: "rewound", key, prompts, newest });
}

/** Only parents whose tool call is on this page: the rest of a subagent's words would otherwise be lost. */
function childrenByParent(items: readonly Item[]): Map<string, Item[]> {
  const children = new Map<string, Item[]>();
  const tools = new Set<string>();
  for (const item of items) {
    if (item.kind === "tool") tools.add(item.toolUseId);
    if (item.parent === undefined || !tools.has(item.parent)) continue;
    const siblings = children.get(item.parent);
    if (siblings) siblings.push(item);
    else children.set(item.parent, [item]);
  }
  return children;
}

/** A block that is still empty, or thinking that the model does not reveal. */
function isEmpty(item: Item): boolean {
  return (item.kind === "text" || item.kind === "thinking") && item.text.trim() === "";
}

function isWriting(item: Item | undefined): boolean {
  if (item?.kind === "text" || item?.kind === "thinking") return item.live && item.text.trim() !== "";
  return item?.kind === "tool" && (item.phase === "running" || item.phase === "writing");
}
