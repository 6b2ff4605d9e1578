/**
 * One session's log as far as this page has it: a window of consecutive `seq`s, the conversation made from it, and the
 * decisions that wait.
 *
 * Events arrive from a replay, from the live stream, or twice from both. What lies inside the window is dropped, what
 * comes next is taken, and what comes too early is held back until the gap before it has been filled: nothing is lost
 * and nothing is shown twice, whatever the connection did.
 */
import type { ErrorCode } from "../gen/errors";
import type {
  Behavior,
  DecidedCall,
  History,
  PermissionRequest,
  PermissionResult,
  ServerEvent,
} from "../gen/events";
import type { Json } from "../wire/json";
import { type Entry, historyEntry, messageEntry, statusEntry } from "./entries";
import { readMessage } from "./message";
import type { QueuedPrompt } from "./prompts";
import { append, emptyTranscript, prepend, type Transcript } from "./transcript";

export type Decision =
  | { readonly request: PermissionRequest; readonly state: "waiting" }
  /** Answered here, not yet confirmed by the server. */
  | {
      readonly request: PermissionRequest;
      readonly state: "sent";
      readonly commandId: string;
      readonly result: PermissionResult;
    };

/** How the permission of a tool call was decided. */
export interface Decided {
  readonly behavior: Behavior;
  /** What ran, where a person changed what was asked for. */
  readonly editedInput?: Json;
}

/**
 * `summary`: the decisions and prompts that wait, which a replay of the newest page may not contain. `older`: the page
 * before the window. `repair`: what is missing after it.
 */
export type HistoryPurpose = "summary" | "older" | "repair";

export interface SessionLog {
  readonly transcript: Transcript;
  /** The window: everything from `first` to `last` is known. Empty while `last < first`. */
  readonly first: number;
  readonly last: number;
  /** The newest `seq` when loading began; the window reaching it ends the loading. */
  readonly target: number;
  readonly held: readonly SequencedEvent[];
  /** What `session.history` was asked for and has not answered yet, by the id of the command that asked. */
  readonly asked: ReadonlyMap<string, HistoryPurpose>;
  /** By request id, oldest first. */
  readonly decisions: ReadonlyMap<string, Decision>;
  /** Request ids that have been answered or withdrawn: a late replay does not raise them again. */
  readonly resolved: ReadonlySet<string>;
  /** How the permission of a tool call was decided, by the call's id. */
  readonly decided: ReadonlyMap<string, Decided>;
  readonly queue: readonly QueuedPrompt[];
}

type LogEvent = Extract<
  ServerEvent,
  {
    type:
      | "session.status"
      | "stream.user_prompt"
      | "stream.message"
      | "permission.request"
      | "permission.resolved";
  }
>;

/** An event that is part of the log. (A status may also be told outside it, as an answer that changed nothing.) */
export type SequencedEvent = LogEvent extends infer Each
  ? Each extends { payload: infer Payload }
    ? Omit<Each, "payload"> & { payload: Payload & { seq: number } }
    : never
  : never;

export function isSequenced(event: ServerEvent): event is SequencedEvent & ServerEvent {
  return "payload" in event && "seq" in event.payload && typeof event.payload.seq === "number";
}

/** A piece of a message that is being written. They come by the hundred. */
export function isPiece(event: ServerEvent): boolean {
  return event.type === "stream.message" && readMessage(event.payload.message).type === "stream_event";
}

/** A log that will be filled by a replay that starts after `afterSeq`. */
export function openLog(afterSeq: number, target: number): SessionLog {
  return {
    transcript: emptyTranscript,
    first: afterSeq + 1,
    last: afterSeq,
    target,
    held: [],
    asked: new Map(),
    decisions: new Map(),
    resolved: new Set(),
    decided: new Map(),
    queue: [],
  };
}

export function isLoading(log: SessionLog): boolean {
  return log.last < log.target;
}

export function hasOlder(log: SessionLog): boolean {
  return log.first > 1;
}

export function isAsked(log: SessionLog, purpose: HistoryPurpose): boolean {
  return [...log.asked.values()].includes(purpose);
}

export function ask(log: SessionLog, commandId: string, purpose: HistoryPurpose): SessionLog {
  return { ...log, asked: new Map(log.asked).set(commandId, purpose) };
}

/** The server refused the command: nothing more comes for it. */
export function acceptRefusal(log: SessionLog, commandId: string, code: ErrorCode | undefined): SessionLog {
  if (log.asked.has(commandId)) return { ...log, asked: without(log.asked, commandId) };
  const decision = [...log.decisions.values()].find(
    (each) => each.state === "sent" && each.commandId === commandId,
  );
  // An answer that was sent again after a broken connection may have arrived the first time; the log tells which counted.
  if (!decision || code === "already_answered") return log;
  const { request } = decision;
  return { ...log, decisions: new Map(log.decisions).set(request.requestId, { request, state: "waiting" }) };
}

function without<T>(map: ReadonlyMap<string, T>, key: string): ReadonlyMap<string, T> {
  const next = new Map(map);
  next.delete(key);
  return next;
}

export function acceptEvents(log: SessionLog, events: readonly SequencedEvent[]): SessionLog {
  const decided = events.reduce(acceptDecision, log);
  return take(decided, [...decided.held, ...events]);
}

/** An answer to `session.history`. Whatever it was asked for, it also tells what waits right now. */
export function acceptHistory(log: SessionLog, history: History, commandId: string | undefined): SessionLog {
  const purpose = commandId === undefined ? undefined : log.asked.get(commandId);
  const asked = commandId === undefined ? log.asked : without(log.asked, commandId);
  const messages = history.messages.flatMap((message, index): Entry[] => {
    const seq = history.seqs[index];
    return seq === undefined
      ? []
      : [historyEntry(seq, history.kinds[index], message, history.times?.[index])];
  });
  const statuses = (history.statuses ?? []).flatMap((change) => statusEntry(change) ?? []);
  const entries = [...messages, ...statuses].toSorted((a, b) => a.seq - b.seq);
  const decided = withDecided(log.decided, history.decided ?? []);
  const next = { ...history.pending.reduce(raise, log), asked, decided, queue: history.queueItems ?? [] };
  switch (purpose) {
    case "older":
      return acceptOlder(next, entries);
    case "repair":
      return acceptRepair(next, entries);
    default:
      return next;
  }
}

/** How permissions were decided, by the call's id. */
export const decidedOf = (told: readonly DecidedCall[]): ReadonlyMap<string, Decided> =>
  withDecided(new Map(), told);

/** The same map if it says nothing new: rows are drawn again for another one. */
function withDecided(
  known: ReadonlyMap<string, Decided>,
  told: readonly DecidedCall[],
): ReadonlyMap<string, Decided> {
  const fresh = told.filter(({ toolUseId }) => !known.has(toolUseId));
  if (fresh.length === 0) return known;
  return new Map([
    ...known,
    ...fresh.map(({ toolUseId, behavior, editedInput }) => [toolUseId, { behavior, editedInput }] as const),
  ]);
}

function acceptOlder(log: SessionLog, entries: readonly Entry[]): SessionLog {
  const older = entries.filter((entry) => entry.seq < log.first);
  // A page without a single message means that nothing older is left to show.
  return { ...log, first: older.at(0)?.seq ?? 1, transcript: prepend(log.transcript, older) };
}

/** Gaps that remain after a repair are numbers that the server no longer has, so what was held back is taken. */
function acceptRepair(log: SessionLog, entries: readonly Entry[]): SessionLog {
  const newer = entries.filter((entry) => entry.seq > log.last);
  const reached = newer.at(-1)?.seq ?? log.last;
  const held = log.held.filter((event) => event.payload.seq > reached);
  const gapEnd = held[0] ? held[0].payload.seq - 1 : reached;
  return take({ ...log, last: gapEnd, transcript: append(log.transcript, newer) }, held);
}

/** Whether the agent has asked a question, and does nothing until it has its answer. */
export function isAsking(log: SessionLog | undefined): boolean {
  if (!log || log.decisions.size === 0) return false;
  return [...log.decisions.values()].some(({ request }) => request.toolName === "AskUserQuestion");
}

/** Marks a decision as answered by this page. */
export function markSent(
  log: SessionLog,
  requestId: string,
  commandId: string,
  result: PermissionResult,
): SessionLog {
  const decision = log.decisions.get(requestId);
  if (!decision) return log;
  const { request } = decision;
  return {
    ...log,
    decisions: new Map(log.decisions).set(requestId, { request, state: "sent", commandId, result }),
  };
}

function raise(log: SessionLog, request: PermissionRequest): SessionLog {
  if (log.decisions.has(request.requestId) || log.resolved.has(request.requestId)) return log;
  return { ...log, decisions: new Map(log.decisions).set(request.requestId, { request, state: "waiting" }) };
}

function acceptDecision(log: SessionLog, event: SequencedEvent): SessionLog {
  if (event.type === "permission.request") return raise(log, event.payload);
  if (event.type === "permission.resolved") {
    const { requestId, toolUseId, behavior, editedInput } = event.payload;
    const decisions = new Map(log.decisions);
    decisions.delete(requestId);
    return {
      ...log,
      decisions,
      resolved: new Set(log.resolved).add(requestId),
      decided: new Map(log.decided).set(toolUseId, { behavior, editedInput }),
    };
  }
  return log;
}

function take(log: SessionLog, events: readonly SequencedEvent[]): SessionLog {
  let last = log.last;
  const taken: Entry[] = [];
  const held: SequencedEvent[] = [];
  for (const event of events.toSorted((a, b) => a.payload.seq - b.payload.seq)) {
    const { seq } = event.payload;
    if (seq <= last) continue;
    if (seq > last + 1) {
      held.push(event);
      continue;
    }
    last = seq;
    const entry = liveEntry(event);
    if (entry) taken.push(entry);
  }
  return {
    ...log,
    last,
    held,
    queue: stillQueued(log.queue, taken),
    transcript: append(log.transcript, taken),
  };
}

/** What waits still, after these entries. */
function stillQueued(queue: readonly QueuedPrompt[], entries: readonly Entry[]): readonly QueuedPrompt[] {
  const said = new Set(entries.flatMap((entry) => (entry.kind === "prompt" ? (entry.promptId ?? []) : [])));
  return queue.some(({ promptId }) => said.has(promptId))
    ? queue.filter(({ promptId }) => !said.has(promptId))
    : queue;
}

function liveEntry(event: SequencedEvent): Entry | undefined {
  switch (event.type) {
    case "stream.user_prompt":
      return {
        kind: "prompt",
        seq: event.payload.seq,
        prompt: event.payload.prompt,
        promptId: event.payload.promptId,
        uuid: event.payload.uuid,
        attachments: event.payload.attachments,
        context: event.payload.context,
        at: event.payload.at,
      };
    case "stream.message":
      // The time of its arrival: the server tells a message of the agent again after a crash, and can't know the time of the
      // first telling. A history has the stored times.
      return messageEntry(event.payload.seq, event.payload.message, Date.now());
    case "session.status":
      return statusEntry(event.payload);
    default:
      return undefined;
  }
}
