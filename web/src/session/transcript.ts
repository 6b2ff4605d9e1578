/**
 * From the log of a session to the items of its conversation.
 *
 * A transcript is a fold over entries in the order of their `seq`. Appending is incremental; an older page that is put
 * in front folds everything anew, which makes the result independent of how the pages arrived. Items are replaced,
 * never changed, so that a view can tell by identity what it has to draw again.
 */
import type {
  ApiRetry,
  Init,
  StreamDelta,
  StreamEvent,
  TaskReport,
  TurnFigures,
  Usage,
} from "../gen/messages";
import { asArray, asNumber, asObject, asString } from "../wire/json";
import type { Entry } from "./entries";
import type { Item, NoticeCode, ResultItem, ResultOutcome, Retry, TextItem, ToolItem } from "./items";
import {
  type AgentMessage,
  type Block,
  blocksOf,
  contentText,
  imagesOf,
  parentOf,
  problemsOf,
  tokensOf,
} from "./message";

type Of<Type extends AgentMessage["type"]> = Extract<AgentMessage, { type: Type }>;

/** The newest message that was streamed. */
interface LiveMessage {
  readonly id: string;
  /** Block index → position of its item. */
  readonly blocks: ReadonlyMap<number, number>;
  /** Blocks whose finished form has arrived. */
  readonly finished: ReadonlySet<number>;
}

export interface Transcript {
  readonly entries: readonly Entry[];
  /** Pieces of messages that are not finished. Once they are, their pieces say nothing more and are let go. */
  readonly pieces: readonly Entry[];
  readonly items: readonly Item[];
  /** Position of each tool call's item, by its id. */
  readonly toolAt: ReadonlyMap<string, number>;
  /** What is being streamed, by the subagent that streams it ("" for the main one). */
  readonly live: ReadonlyMap<string, LiveMessage>;
  /** A piece of a message whose beginning is on an older page. */
  readonly orphaned: boolean;
  readonly interrupted: boolean;
  /** What the agent said of itself when its last turn began. */
  readonly init: Init | undefined;
  /** What runs beside the conversation, by the task's id. */
  readonly tasks: ReadonlyMap<string, TaskReport>;
  /** How many tokens the model read for its last answer: the size of the conversation. */
  readonly contextTokens: number | undefined;
}

export const emptyTranscript: Transcript = {
  entries: [],
  pieces: [],
  items: [],
  toolAt: new Map(),
  live: new Map(),
  orphaned: false,
  interrupted: false,
  init: undefined,
  tasks: new Map(),
  contextTokens: undefined,
};

/** The transcript while a batch is folded in: copies that may be changed, made once a batch. */
interface Draft {
  entries: Entry[];
  pieces: Entry[];
  items: Item[];
  toolAt: Map<string, number>;
  live: Map<string, LiveMessage>;
  orphaned: boolean;
  interrupted: boolean;
  init: Init | undefined;
  tasks: Map<string, TaskReport>;
  contextTokens: number | undefined;
}

export function append(transcript: Transcript, entries: readonly Entry[]): Transcript {
  if (entries.length === 0) return transcript;
  const draft: Draft = {
    ...transcript,
    // The same array for as long as only pieces come: what is made from whole messages need not be made again.
    entries: entries.every(isPiece) ? (transcript.entries as Entry[]) : [...transcript.entries],
    pieces: [...transcript.pieces],
    items: [...transcript.items],
    toolAt: new Map(transcript.toolAt),
    live: new Map(transcript.live),
    tasks: new Map(transcript.tasks),
  };
  for (const entry of entries) {
    (isPiece(entry) ? draft.pieces : draft.entries).push(entry);
    fold(draft, entry);
  }
  return draft;
}

export function prepend(transcript: Transcript, older: readonly Entry[]): Transcript {
  if (older.length === 0) return transcript;
  const known = [...transcript.entries, ...transcript.pieces].toSorted((a, b) => a.seq - b.seq);
  return append(emptyTranscript, [...older, ...known]);
}

function isPiece(entry: Entry): boolean {
  return entry.kind === "message" && entry.message.type === "stream_event";
}

/** The log entries that an item came from, for 'show raw'. */
export function rawEntries(transcript: Transcript, seqs: readonly number[]): Entry[] {
  const wanted = new Set(seqs);
  return [...transcript.entries, ...transcript.pieces].filter((entry) => wanted.has(entry.seq));
}

function fold(draft: Draft, entry: Entry): void {
  switch (entry.kind) {
    case "prompt":
      draft.interrupted = false;
      draft.items.push({
        kind: "prompt",
        key: `p${entry.seq}`,
        seqs: [entry.seq],
        text: entry.prompt,
        uuid: entry.uuid,
        attachments: entry.attachments,
        context: entry.context,
        images: entry.images,
      });
      return;
    case "status":
      foldStatus(draft, entry);
      return;
    case "message":
      foldMessage(draft, entry.seq, entry.message);
  }
}

function foldStatus(draft: Draft, entry: Entry & { kind: "status" }): void {
  if (entry.status === "running") return;
  endLive(draft);
  const at = draft.items.length - 1;
  const last = draft.items[at];
  // A turn that the user stopped ends in `idle`. The agent reports an error then, which is not a failure.
  if (entry.status === "idle" && last?.kind === "result" && last.outcome === "error") {
    draft.items[at] = { ...last, outcome: "stopped", problems: [] };
  }
  if (entry.turn) foldFigures(draft, entry.turn);
  if (entry.status === "idle" && draft.interrupted) pushNotice(draft, entry.seq, "interrupted");
  draft.interrupted = false;
  if (entry.status === "error" && entry.error && !(last?.kind === "result" && last.outcome === "error")) {
    draft.items.push({
      kind: "notice",
      key: `n${entry.seq}`,
      seqs: [entry.seq],
      code: "failed",
      text: entry.error,
      durationMs: entry.turn?.durationMs,
    });
  }
}

/** The server knows what a turn took; the agent reports the cost of all turns so far. */
function foldFigures(draft: Draft, { durationMs, tokensIn, tokensOut, costUsd }: TurnFigures): void {
  const at = draft.items.findLastIndex(
    ({ kind, parent }) => kind === "result" || (kind === "prompt" && !parent),
  );
  const result = draft.items[at];
  if (result?.kind === "result") draft.items[at] = { ...result, durationMs, tokensIn, tokensOut, costUsd };
}

function foldMessage(draft: Draft, seq: number, message: AgentMessage): void {
  const parent = parentOf(message);
  switch (message.type) {
    case "stream_event":
      if (message.event) foldStream(draft, seq, message.event, parent);
      return;
    case "assistant":
      foldAssistant(draft, seq, message, parent);
      return;
    case "user":
      foldUser(draft, seq, message, parent);
      return;
    case "system":
      foldSystem(draft, seq, message);
      return;
    case "result":
      foldResult(draft, seq, message);
      return;
    case "tool_progress":
      changeTool(draft, asString(message.tool_use_id), (tool) => ({
        ...tool,
        elapsedSeconds: asNumber(message.elapsed_time_seconds) ?? tool.elapsedSeconds,
      }));
      return;
    case "rate_limit_event": {
      const status = asString(message.rate_limit_info?.status);
      if (status === undefined || status === "allowed") return;
      const seconds = asNumber(message.rate_limit_info?.resetsAt);
      draft.items.push({
        kind: "notice",
        key: `n${seq}`,
        seqs: [seq],
        code: status === "rejected" ? "rateLimited" : "limitNear",
        until: seconds === undefined ? undefined : seconds * 1000,
      });
      return;
    }
    default:
    // A kind of message that this version does not know is no reason to stop.
  }
}

const blockIndex = ({ index }: { index?: number | null }) => asNumber(index) ?? 0;

function foldStream(draft: Draft, seq: number, event: StreamEvent, parent: string | undefined): void {
  const lane = parent ?? "";
  const live = draft.live.get(lane);
  switch (event.type) {
    case "message_start": {
      endLane(draft, lane);
      const id = asString(event.message?.id) ?? `s${seq}`;
      draft.live.set(lane, { id, blocks: new Map(), finished: new Set() });
      return;
    }
    case "content_block_start": {
      if (!live) {
        draft.orphaned = true;
        return;
      }
      const index = blockIndex(event);
      const block = event.content_block;
      const item = block && blockItem(`${live.id}:${index}`, [seq], parent, block, true);
      if (!item) return;
      const at = draft.items.push(item) - 1;
      if (item.kind === "tool") draft.toolAt.set(item.toolUseId, at);
      draft.live.set(lane, { ...live, blocks: new Map(live.blocks).set(index, at) });
      return;
    }
    case "content_block_delta": {
      const at = live?.blocks.get(blockIndex(event));
      if (!live || at === undefined) {
        draft.orphaned ||= !live;
        return;
      }
      if (event.delta) foldDelta(draft, at, event.delta);
      return;
    }
    case "content_block_stop": {
      const at = live?.blocks.get(blockIndex(event));
      if (at !== undefined) settle(draft, at);
      return;
    }
    case "message_stop":
      // The finished form of its last block may still follow, so the message stays known until the next one begins.
      for (const each of live?.blocks.values() ?? []) settle(draft, each);
  }
}

function foldDelta(draft: Draft, at: number, delta: StreamDelta): void {
  const item = draft.items[at];
  if (item?.kind !== "text" && item?.kind !== "thinking") return;
  const piece =
    delta.type === "text_delta" ? delta.text : delta.type === "thinking_delta" ? delta.thinking : undefined;
  const more = asString(piece);
  if (more !== undefined) draft.items[at] = { ...item, text: item.text + more };
}

function foldAssistant(
  draft: Draft,
  seq: number,
  { message }: Of<"assistant">,
  parent: string | undefined,
): void {
  const id = asString(message?.id) ?? `a${seq}`;
  draft.orphaned = false;
  if (parent === undefined) {
    const { input, cached } = tokensOf(message?.usage);
    draft.contextTokens = (input ?? 0) + (cached ?? 0) || draft.contextTokens;
  }
  for (const block of blocksOf(message?.content)) {
    const streamed = takeStreamed(draft, parent ?? "", id, block);
    const before = streamed === undefined ? undefined : draft.items[streamed];
    const item = blockItem(before?.key ?? freshKey(draft, id), [seq], parent, block, false);
    if (!item) continue;
    const at = streamed ?? draft.items.push(item) - 1;
    draft.items[at] = item;
    if (item.kind === "tool") draft.toolAt.set(item.toolUseId, at);
  }
}

/**
 * Where the streamed form of a finished block stands: the same tool call, or the first block of that kind in that
 * message that no finished one has replaced yet.
 */
function takeStreamed(draft: Draft, lane: string, messageId: string, block: Block): number | undefined {
  const live = draft.live.get(lane);
  if (live?.id !== messageId) return undefined;
  for (const [index, at] of live.blocks) {
    const item = draft.items[at];
    const matches =
      item?.kind === "tool" ? "id" in block && item.toolUseId === block.id : item?.kind === block.type;
    if (!matches || live.finished.has(index)) continue;
    draft.live.set(lane, { ...live, finished: new Set(live.finished).add(index) });
    return at;
  }
  return undefined;
}

function freshKey(draft: Draft, messageId: string): string {
  let index = 0;
  const taken = new Set(draft.items.slice(-64).map((item) => item.key));
  while (taken.has(`${messageId}:${index}`)) index += 1;
  return `${messageId}:${index}`;
}

function blockItem(
  key: string,
  seqs: readonly number[],
  parent: string | undefined,
  block: Block,
  live: boolean,
): TextItem | ToolItem | undefined {
  switch (block.type) {
    case "text":
      return { kind: "text", key, seqs, parent, text: asString(block.text) ?? "", live };
    case "thinking":
      return { kind: "thinking", key, seqs, parent, text: asString(block.thinking) ?? "", live };
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      return {
        kind: "tool",
        key,
        seqs,
        parent,
        toolUseId: asString(block.id) ?? key,
        name: asString(block.name) ?? "",
        input: asObject(block.input) ?? {},
        phase: live ? "writing" : "running",
      };
    default:
      return undefined;
  }
}

function foldUser(draft: Draft, seq: number, message: Of<"user">, parent: string | undefined): void {
  const content = message.message?.content;
  const results = blocksOf(content).filter((block) => block.type === "tool_result");
  for (const block of results) {
    changeTool(draft, asString(block.tool_use_id), (tool) => ({
      ...tool,
      seqs: [...tool.seqs, seq],
      phase: block.is_error === true ? "error" : "success",
      output: contentText(block.content).replace(TOOL_ERROR, "$1"),
      images: imagesOf(block.content),
      details: asObject(message.tool_use_result),
    }));
  }
  if (
    results.length > 0 ||
    message.isReplay === true ||
    message.isSynthetic === true ||
    message.isMeta === true
  )
    return;
  const text = contentText(content).trim();
  if (text.startsWith("[Request interrupted by user")) {
    // The turn's result will say so; a notice is needed only where none follows.
    draft.interrupted = true;
  } else if (text !== "" && parent !== undefined) {
    draft.items.push({ kind: "prompt", key: `u${seq}`, seqs: [seq], parent, text });
  }
}

/** What the agent puts around an error for the model. */
const TOOL_ERROR = /^<tool_use_error>([\s\S]*)<\/tool_use_error>\s*$/;

function foldSystem(draft: Draft, seq: number, message: Of<"system">): void {
  switch (message.subtype) {
    case "init":
      draft.init = message;
      foldInit(draft, seq, message);
      return;
    case "task_started":
    case "task_progress":
    case "task_updated":
    case "task_notification":
      foldTask(draft, message);
      return;
    case "compact_boundary":
      // The history knows what was put in place of the messages before; the agent does not tell while it works.
      pushNotice(draft, seq, "compacted", asString(message.summary));
      return;
    case "api_retry": {
      const retry = retryOf(message);
      const at = draft.items.length - 1;
      const last = draft.items[at];
      if (last?.kind === "notice" && last.code === "retrying") {
        draft.items[at] = { ...last, seqs: [...last.seqs, seq], retry };
      } else {
        draft.items.push({ kind: "notice", key: `n${seq}`, seqs: [seq], code: "retrying", retry });
      }
      return;
    }
    case "notification":
      pushSaid(draft, seq, message.text);
      return;
    case "notice":
      pushSaid(draft, seq, message.message);
      return;
    case "informational":
      pushSaid(draft, seq, message.content);
      return;
    case "unreadable":
      pushNotice(draft, seq, "unreadable", asString(message.raw));
      return;
    case "turn_stopped": {
      const { duration_ms: durationMs, total_cost_usd: totalCostUsd, usage } = message;
      pushResult(
        draft,
        seq,
        { outcome: "stopped", subtype: "", problems: [] },
        { durationMs, totalCostUsd, usage },
      );
      return;
    }
    default:
    // A kind of message that this version does not know is no reason to stop.
  }
}

function retryOf(message: ApiRetry): Retry {
  const status = asNumber(message.error_status);
  const error = asString(message.error);
  const reason =
    status === 401 || status === 403 || error === "authentication_failed"
      ? "signIn"
      : status === 429
        ? "rateLimit"
        : status === 529 || error === "overloaded"
          ? "overloaded"
          : status === undefined
            ? "unreachable"
            : "server";
  return {
    attempt: asNumber(message.attempt) ?? 1,
    limit: asNumber(message.max_retries),
    reason,
    status,
    delayMs: asNumber(message.retry_delay_ms),
  };
}

/** Each report says only what is new, so they are laid over each other. */
function foldTask(draft: Draft, message: TaskReport): void {
  const id = asString(message.task_id);
  if (id === undefined) return;
  const patch: TaskReport = asObject(message.patch) ?? {};
  const before = draft.tasks.get(id);
  // A progress report describes the step at hand; the task keeps the name that it began with.
  const description = asString(before?.description) ?? message.description;
  draft.tasks.set(id, { ...before, ...message, ...patch, description });
}

/** Every turn begins with an `init` line; only one that says something new is worth a place. */
function foldInit(draft: Draft, seq: number, message: Init): void {
  const item: Item = {
    kind: "init",
    key: `i${seq}`,
    seqs: [seq],
    model: asString(message.model),
    cwd: asString(message.cwd),
    permissionMode: asString(message.permissionMode),
    claudeSessionId: asString(message.session_id),
    agentVersion: asString(message.claude_code_version),
    toolCount: asArray(message.tools).length,
  };
  const before = draft.items.findLast((each) => each.kind === "init");
  const same =
    before?.kind === "init" &&
    before.model === item.model &&
    before.cwd === item.cwd &&
    before.permissionMode === item.permissionMode &&
    before.claudeSessionId === item.claudeSessionId;
  if (!same) draft.items.push(item);
}

function foldResult(draft: Draft, seq: number, message: Of<"result">): void {
  const subtype = asString(message.subtype) ?? "";
  const failed = message.is_error === true || (subtype !== "" && subtype !== "success");
  const outcome: ResultOutcome = draft.interrupted ? "stopped" : failed ? "error" : "success";
  const { duration_ms: durationMs, total_cost_usd: totalCostUsd, usage } = message;
  pushResult(
    draft,
    seq,
    { outcome, subtype, problems: outcome === "error" ? problemsOf(message) : [] },
    { durationMs, totalCostUsd, usage },
  );
}

/** How a turn ended, and what it took. */
function pushResult(
  draft: Draft,
  seq: number,
  end: Pick<ResultItem, "outcome" | "subtype" | "problems">,
  took: {
    durationMs?: number | null;
    totalCostUsd?: number | null;
    usage?: Usage | null;
  },
): void {
  endLive(draft);
  const tokens = tokensOf(took.usage);
  const totalCostUsd = asNumber(took.totalCostUsd);
  const before = draft.items.findLast((item) => item.kind === "result")?.totalCostUsd;
  const item: ResultItem = {
    kind: "result",
    key: `r${seq}`,
    seqs: [seq],
    ...end,
    durationMs: asNumber(took.durationMs),
    costUsd: costSince(before, totalCostUsd),
    totalCostUsd,
    tokensIn: tokens.input === undefined ? undefined : tokens.input + (tokens.cached ?? 0),
    tokensOut: tokens.output,
  };
  draft.interrupted = false;
  dropRepeated(draft, item);
  draft.items.push(item);
}

/**
 * What a turn cost, for logs of earlier versions, which don't say: what came on top of the turn before, if that is loaded.
 * A smaller sum is that of a new process, which counts from zero.
 */
function costSince(before: number | undefined, total: number | undefined): number | undefined {
  if (before === undefined || total === undefined) return undefined;
  return total >= before ? total - before : total;
}

/** What failed is said by the agent as an answer and again in its result: once is enough. */
function dropRepeated(draft: Draft, result: ResultItem): void {
  const last = draft.items.at(-1);
  const repeated = last?.kind === "text" && result.problems.includes(last.text.trim());
  if (repeated) draft.items.pop();
}

function pushSaid(draft: Draft, seq: number, words: unknown): void {
  const text = asString(words);
  if (text) pushNotice(draft, seq, "said", text);
}

function pushNotice(draft: Draft, seq: number, code: NoticeCode, text?: string): void {
  draft.items.push({ kind: "notice", key: `n${seq}`, seqs: [seq], code, text });
}

function changeTool(draft: Draft, toolUseId: string | undefined, change: (tool: ToolItem) => ToolItem): void {
  const at = toolUseId === undefined ? undefined : draft.toolAt.get(toolUseId);
  const item = at === undefined ? undefined : draft.items[at];
  if (at !== undefined && item?.kind === "tool") draft.items[at] = change(item);
}

/** A block that has been written to its end, though its finished form may still be on the way. */
function settle(draft: Draft, at: number): void {
  const item = draft.items[at];
  if ((item?.kind === "text" || item?.kind === "thinking") && item.live)
    draft.items[at] = { ...item, live: false };
}

function endLane(draft: Draft, lane: string): void {
  const live = draft.live.get(lane);
  if (!live) return;
  draft.live.delete(lane);
  for (const at of live.blocks.values()) settle(draft, at);
  const [own, others] = partition(draft.pieces, (entry) => laneOf(entry) === lane);
  draft.pieces = others;
  // A message that was cut off has no other form than its pieces.
  if (live.finished.size < live.blocks.size) {
    draft.entries = [...draft.entries, ...own].toSorted((a, b) => a.seq - b.seq);
  }
}

function laneOf(entry: Entry): string {
  return (entry.kind === "message" && parentOf(entry.message)) || "";
}

function partition<T>(all: readonly T[], belongs: (each: T) => boolean): [T[], T[]] {
  const yes: T[] = [];
  const no: T[] = [];
  for (const each of all) (belongs(each) ? yes : no).push(each);
  return [yes, no];
}

/** The turn is over: nothing is being written any more, and tools without a result will not get one. */
function endLive(draft: Draft): void {
  for (const lane of draft.live.keys()) endLane(draft, lane);
  draft.orphaned = false;
  for (const at of draft.toolAt.values()) {
    const item = draft.items[at];
    if (item?.kind === "tool" && (item.phase === "running" || item.phase === "writing")) {
      draft.items[at] = { ...item, phase: "stopped" };
    }
  }
}
