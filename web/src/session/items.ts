import type { Attachment, UiContext } from "../gen/events";
import type { Json } from "../wire/json";

interface ItemBase {
  /** Stable from the first streamed word to the finished message, and across reloads of older pages. */
  readonly key: string;
  /** The log entries this came from, for 'show raw'. */
  readonly seqs: readonly number[];
  /** The tool call of the subagent that said this. */
  readonly parent?: string;
}

export interface PromptItem extends ItemBase {
  readonly kind: "prompt";
  readonly text: string;
  readonly uuid?: string;
  readonly attachments?: readonly Attachment[];
  readonly context?: UiContext;
  /** Images that came with it in a transcript, as data: addresses. */
  readonly images?: readonly string[];
}

export interface TextItem extends ItemBase {
  readonly kind: "text" | "thinking";
  readonly text: string;
  /** Still being written. */
  readonly live: boolean;
}

/** `stopped`: the turn ended before the tool did. */
export type ToolPhase = "writing" | "running" | "success" | "error" | "stopped";

export interface ToolItem extends ItemBase {
  readonly kind: "tool";
  readonly toolUseId: string;
  readonly name: string;
  /** What ran, or is to run. */
  readonly input: Json;
  /** What the agent asked for, where a person has changed it. */
  readonly asked?: Json;
  readonly phase: ToolPhase;
  /** What the model was told. */
  readonly output?: string;
  /** Images in the result, as data: addresses. */
  readonly images?: readonly string[];
  /** The structured result that the agent keeps beside it. */
  readonly details?: Json;
  readonly elapsedSeconds?: number;
}

export interface InitItem extends ItemBase {
  readonly kind: "init";
  readonly model?: string;
  readonly cwd?: string;
  readonly permissionMode?: string;
  readonly claudeSessionId?: string;
  readonly agentVersion?: string;
  readonly toolCount: number;
}

export type ResultOutcome = "success" | "stopped" | "error";

export interface ResultItem extends ItemBase {
  readonly kind: "result";
  readonly outcome: ResultOutcome;
  /** The agent's own word for how it ended. */
  readonly subtype: string;
  readonly problems: readonly string[];
  readonly durationMs?: number;
  /** What this turn cost, in dollars. */
  readonly costUsd?: number;
  /** What the conversation has cost so far by the agent's own account. */
  readonly totalCostUsd?: number;
  /** Tokens that models have read in this turn, from caches too. */
  readonly tokensIn?: number;
  readonly tokensOut?: number;
}

/** Things that happened to the conversation rather than in it. `code` has a sentence in the catalogues. */
export type NoticeCode =
  | "compacted"
  | "retrying"
  | "rateLimited"
  | "limitNear"
  | "interrupted"
  | "failed"
  | "unreadable"
  | "said";

/** Why a call of the model is tried again, and when. */
export interface Retry {
  readonly attempt: number;
  readonly limit: number | undefined;
  readonly reason: "signIn" | "rateLimit" | "overloaded" | "server" | "unreachable";
  /** The HTTP status, where there was an answer. */
  readonly status: number | undefined;
  readonly delayMs: number | undefined;
}

export interface NoticeItem extends ItemBase {
  readonly kind: "notice";
  readonly code: NoticeCode;
  readonly text?: string;
  /** How long the turn took that ended like this. */
  readonly durationMs?: number;
  readonly retry?: Retry;
  /** When a limit ends, in milliseconds since 1970. */
  readonly until?: number;
}

export type Item = PromptItem | TextItem | ToolItem | InitItem | ResultItem | NoticeItem;
