/** What the page does: sends what the user decides, and keeps the state in step with the server. */
import type {
  CredentialCreated,
  PermissionRequest,
  PermissionResult,
  ServerEvent,
  SessionConfigure,
  SessionList,
  SessionStart,
} from "../gen/events";
import {
  ask,
  hasOlder,
  type HistoryPurpose,
  isAsked,
  isLoading,
  isPiece,
  isSequenced,
  markSent,
  openLog,
  type SequencedEvent,
} from "../session/log";
import { showAll } from "./cleared";
import { forgetContext } from "./uiContext";
import { forgetImages } from "./useImages";
import type { Callback } from "../session/hookCalls";
import { forgetDraft } from "./drafts";
import { acceptCallback, closeCallback, dropCalls, forgetHooks, registerHooks } from "./hookCalls";
import type { QueuedPrompt } from "../session/prompts";
import { ApiError, getSystem } from "../wire/api";
import { connectEvents } from "../wire/socket";
import { errorText } from "../i18n/errors";
import { askArrangement, isOvertaken, isRefusal } from "./arrange";
import { newId } from "../lib/id";
import { request, setSocket } from "./connection";
import { frameQueue } from "./frame";
import { settle } from "./inquiries";
import { askList, forgetAsked, isAskingFor, isPartial, type ListPurpose, purposeOf } from "./listing";
import { occasionOf, tell } from "./notify";
import { type PromptExtras, sendPrompt, takeReturned } from "./outbox";
import { noteLimits } from "./quota";
import { currentRoute, go } from "./route";
import { type AppState, change, reduceEvents, store, withoutKey } from "./state";
import { keepTab } from "./tabs";

/** How many log entries a session opens with; older ones come as the user scrolls up. */
const FIRST_PAGE = 200;
const OLDER_PAGE = 1_000;
/** How many sessions are listed at once; more come as the user scrolls down or searches. */
const FIRST_SESSIONS = 200;
const MORE_SESSIONS = 500;
/** How many are loaded without anyone asking for them. */
const BACKGROUND_SESSIONS = 4_000;
/** How long it can be undone that something was deleted or put aside. */
export const UNDO_MS = 10_000;

type ErrorListener = (message: string) => void;
type CredentialListener = (created: CredentialCreated) => void;

let onError: ErrorListener = () => {};

/** `onCredential` is told of keys and browsers that can get in from now on. */
export function connect(listener: ErrorListener, onCredential: CredentialListener = () => {}): void {
  onError = listener;
  noteDeadLink();
  void refreshSystem();
  // A page that is left open uses nothing but its socket, which can't renew the cookie.
  setInterval(() => void refreshSystem(), RENEWAL_MS);
  const queue = frameQueue<ServerEvent>(applyEvents, isPiece);
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = connectEvents(`${scheme}//${location.host}/ws/events`, {
    onOpen() {
      resynchronise();
      grantWish();
    },
    onEvent(event) {
      if (settle(event)) return;
      if (event.type === "hook.callback") callBack(event.payload);
      else if (event.type === "hook.resolved") closeCallback(event.payload);
      else if (event.type === "credential.created") {
        store.setState(({ announced }) => ({ announced: announced + 1 }));
        onCredential(event.payload);
      } else queue.push(event);
    },
    onConnection(connection) {
      // What the connection has said is taken in before anything is asked of the next one.
      if (connection === "offline") queue.flush();
      store.setState({ connection });
      if (connection !== "offline") return;
      // A refused upgrade looks like any broken connection; only a plain request says that the sign-in has ended.
      void refreshSystem();
      grantWish();
    },
  });
  setSocket(socket);
}

/** A link that works is redirected by the server, so a code that is still in the address was refused. */
function noteDeadLink(): void {
  if (!new URLSearchParams(location.search).has("code")) return;
  history.replaceState(null, "", location.pathname + location.hash);
  store.setState({ deadLink: true });
}

const RENEWAL_MS = 12 * 60 * 60 * 1000;

async function refreshSystem(): Promise<void> {
  try {
    store.setState({ system: await getSystem(), access: "granted" });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) store.setState({ access: "signedOut" });
  }
}

let wish: (() => void) | undefined;

/**
 * Does something at once, or, on a page that is still opening, as soon as its first connection stands or has failed. Who
 * is that quick twice has changed their mind: the later wish counts.
 */
export function onceConnected(action: () => void): void {
  if (store.getState().connection === "connecting") wish = action;
  else action();
}

function grantWish(): void {
  const granted = wish;
  wish = undefined;
  granted?.();
}

/** After every (re)connect: list the sessions, and go on with each open one from where it was. */
function resynchronise(): void {
  // As much of the list as was there comes back at once.
  store.setState(({ listing }) => ({ listing: forgetAsked(listing) }));
  askSessions("first", { limit: Math.max(FIRST_SESSIONS, store.getState().sessions.size) });
  askArrangement();
  registerHooks();
  if (statisticsWanted) request({ type: "statistics.subscribe" });
  const logs = new Map(store.getState().logs);
  for (const [sessionId, log] of logs) {
    logs.set(sessionId, { ...log, asked: new Map() });
    subscribe(sessionId, log.last);
  }
  store.setState({ logs });
  for (const sessionId of logs.keys()) askHistory(sessionId, "summary", { limit: 1 });
  resend();
}

/** What the last connection may have lost goes out again, under the same ids: what had arrived is only acknowledged. */
function resend(): void {
  const { outbox, starting, logs } = store.getState();
  if (starting) request({ type: "session.start", payload: starting.payload }, starting.commandId);
  for (const { commandId, ...payload } of outbox.sending.values())
    request({ type: "session.continue", payload }, commandId);
  for (const [sessionId, { decisions }] of logs)
    for (const decision of decisions.values())
      if (decision.state === "sent")
        respond(sessionId, decision.request, decision.result, decision.commandId);
}

function applyEvents(all: readonly ServerEvent[]): void {
  const events = all.filter((event) => !isOvertaken(event));
  if (events.some(isRefusal)) askArrangement();
  noteLimits(events);
  const before = store.getState();
  let state = reduceEvents(before, events, Date.now());
  /** There is news of sessions that are not listed: someone has begun one elsewhere, or gone on with an old one. */
  let strangers = false;
  /** The list has come anew, and there is more than it has. */
  let partial = false;
  for (const event of events) {
    if (event.type === "session.list" && purposeOf(before.listing, event.commandId) === "first")
      partial = event.payload.nextCursor !== undefined;
    if (event.type === "runner.error") {
      const message = errorText(event.payload);
      const { sessionId, driver } = event.payload;
      if (sessionId && driver) {
        state = { ...state, drivers: new Map(state.drivers).set(sessionId, driver) };
        continue;
      }
      // The connection is about to end, which is shown; what was sent goes out again with the next one.
      if (event.payload.code === "stopping") continue;
      // Nothing was refused: what has been sent is still on its way.
      if (event.payload.code === "held_up") {
        onError(message);
        continue;
      }
      // What was refused is said where it was asked for; only what belongs nowhere is called out.
      const returned = [...state.outbox.returned.values()].find((sent) => isCauseOf(sent, event));
      if (state.starting && isCauseOf(state.starting, event))
        state = { ...state, starting: undefined, startError: message };
      else if (returned)
        state = { ...state, refused: new Map(state.refused).set(returned.sessionId, message) };
      else onError(message);
    }
    if (event.type === "session.reset") {
      const log = state.logs.get(event.payload.sessionId);
      if (log) subscribe(event.payload.sessionId, log.last);
    }
    if (event.type === "session.started" && state.starting && isCauseOf(state.starting, event)) {
      const { draft } = state.starting;
      state = { ...state, starting: undefined, startError: undefined };
      forgetDraft(draft);
      forgetImages(draft);
      forgetContext(draft);
      showAll(draft);
      goToNew(event.payload.sessionId);
    }
    if (event.type === "session.forked") goToNew(event.payload.newSessionId);
    if (isSequenced(event)) announce(event, before);
    if (event.type === "session.status" && event.payload.status !== "running" && isNews(event, before))
      dropCalls(event.payload.sessionId);
    if (event.type === "session.deleted") forgetHooks(event.payload.sessionId);
    if (event.type === "session.status" && !state.sessions.has(event.payload.sessionId)) strangers = true;
  }
  store.setState(state);
  if (strangers) askSessions("some", { limit: FIRST_SESSIONS });
  if (partial) {
    // What needs the user and what they have arranged may stand anywhere in the list.
    askSessions("some", { only: "waiting" });
    askSessions("some", { only: "running" });
    askSessions("some", { only: "arranged" });
  }
  if (events.some(({ type }) => type === "session.list")) loadInBackground();
  fillGaps();
}

/** What is open as a tab, or belongs to a project, may stand further down in the list than its first page. */
function loadInBackground(): void {
  if (store.getState().sessions.size < BACKGROUND_SESSIONS) loadMoreSessions();
}

function askSessions(purpose: ListPurpose, payload: SessionList): void {
  const commandId = newId();
  if (!request({ type: "session.list", payload }, commandId)) return;
  store.setState(({ listing }) => ({ listing: askList(listing, commandId, purpose) }));
}

/** A session that is not loaded may be on a page that nobody has scrolled to: everything is asked for. */
export function lookUp(id: string): void {
  const { sessions, listing } = store.getState();
  if (!sessions.has(id) && isPartial(listing)) askSessions("first", {});
}

export function loadMoreSessions(): void {
  const { listing } = store.getState();
  if (listing.cursor === undefined || isAskingFor(listing, "more")) return;
  askSessions("more", { cursor: listing.cursor, limit: MORE_SESSIONS });
}

/** Shows a session that has begun a moment ago. */
export function goToNew(id: string): void {
  store.setState({ expected: id });
  keepTab(id);
  askSessions("some", { limit: FIRST_SESSIONS });
  queueMicrotask(() => go({ view: "session", id }));
}

/** Whether the frame answers, or refuses, this command. */
const isCauseOf = (command: { readonly commandId: string }, frame: ServerEvent): boolean =>
  command.commandId === frame.commandId;

/** A replay repeats what was told before. */
function isNews(event: ServerEvent, before: AppState): boolean {
  if (!isSequenced(event)) return false;
  const session = before.sessions.get(event.payload.sessionId);
  return session !== undefined && event.payload.seq > session.lastSeq;
}

function announce(event: SequencedEvent & ServerEvent, before: AppState): void {
  const session = before.sessions.get(event.payload.sessionId);
  if (!session || !isNews(event, before)) return;
  const occasion = occasionOf(event, session);
  if (occasion) tell(occasion, session);
}

function callBack(callback: Callback): void {
  acceptCallback(callback);
  const session = store.getState().sessions.get(callback.sessionId);
  if (session) tell("waiting", session);
}

/** Asks for what is missing: a gap in the log, or the beginning of a message that is still being written. */
function fillGaps(): void {
  for (const [id, log] of store.getState().logs) {
    if (log.held.length > 0 && !isAsked(log, "repair")) {
      askHistory(id, "repair", { afterSeq: log.last, limit: OLDER_PAGE });
    }
    if (log.transcript.orphaned) loadOlder(id);
  }
}

function askHistory(
  sessionId: string,
  purpose: HistoryPurpose,
  range: { afterSeq?: number; beforeSeq?: number; limit: number },
): void {
  const commandId = newId();
  const sent = request({ type: "session.history", payload: { sessionId, ...range } }, commandId);
  if (sent)
    store.setState(({ logs }) => ({ logs: change(logs, sessionId, (log) => ask(log, commandId, purpose)) }));
}

export function openSession(id: string): void {
  const { sessions, logs } = store.getState();
  const session = sessions.get(id);
  if (!session || logs.has(id)) return;
  const afterSeq = Math.max(0, session.lastSeq - FIRST_PAGE);
  store.setState({ logs: new Map(logs).set(id, openLog(afterSeq, session.lastSeq)) });
  subscribe(id, afterSeq);
  askHistory(id, "summary", { limit: 1 });
}

function subscribe(sessionId: string, afterSeq: number): void {
  request({ type: "session.subscribe", payload: { sessionId, afterSeq } });
}

export function loadOlder(sessionId: string): void {
  const log = store.getState().logs.get(sessionId);
  if (!log || isAsked(log, "older") || isLoading(log) || !hasOlder(log)) return;
  askHistory(sessionId, "older", { beforeSeq: log.first, limit: OLDER_PAGE });
}

/** False when offline: the text stays where it was typed, which is on the start page or in a session's own field. */
export function startSession(start: SessionStart, draft = "new"): boolean {
  const { attachments, context, ...rest } = start;
  const commandId = newId();
  const payload = { ...rest, ...given({ attachments, context }), promptId: newId(), requestId: commandId };
  const sent = request({ type: "session.start", payload }, commandId);
  if (sent) store.setState({ starting: { commandId, payload, draft }, startError: undefined });
  return sent;
}

export function continueSession(sessionId: string, prompt: string, extra: PromptExtras = {}): boolean {
  // An agent that died before its conversation had an id is no problem of the user's: another one begins.
  const payload = { sessionId, prompt, ...given(extra), promptId: newId(), afresh: true };
  const commandId = newId();
  const sent = request({ type: "session.continue", payload }, commandId);
  // Someone who says something wants to come back.
  if (sent) keepTab(sessionId);
  if (sent)
    store.setState(({ outbox, refused }) => ({
      outbox: sendPrompt(outbox, { ...payload, commandId }),
      refused: withoutKey(refused, sessionId),
    }));
  return sent;
}

function given({ attachments, context }: PromptExtras): PromptExtras {
  return { ...(attachments?.length && { attachments }), ...(context && { context }) };
}

/** The prompts that did not arrive have been put back into their field. */
export function acknowledgeReturned(sessionId: string): void {
  store.setState(({ outbox }) => ({ outbox: takeReturned(outbox, sessionId) }));
}

export function stopSession(sessionId: string): void {
  request({ type: "session.stop", payload: { sessionId } });
}

export function answerDecision(asked: PermissionRequest, result: PermissionResult): void {
  const { sessionId, requestId } = asked;
  const commandId = newId();
  if (!respond(sessionId, asked, result, commandId)) return;
  store.setState(({ logs }) => ({
    logs: change(logs, sessionId, (log) => markSent(log, requestId, commandId, result)),
  }));
}

function respond(
  sessionId: string,
  { requestId, toolUseId, shown }: PermissionRequest,
  result: PermissionResult,
  commandId: string,
): boolean {
  return request(
    { type: "permission.response", payload: { sessionId, requestId, toolUseId, shown, result } },
    commandId,
  );
}

/**
 * Takes the session out of sight at once. The server keeps it for as long as this can be undone, whatever becomes of the
 * page meanwhile.
 */
export function deleteSession(id: string): void {
  const session = store.getState().sessions.get(id);
  // The removal can be undone for a while; an agent that still works meanwhile is not what was asked for.
  if (session?.status === "running") stopSession(id);
  store.setState(({ leaving }) => ({ leaving: new Set(leaving).add(id) }));
  request({ type: "session.delete", payload: { sessionId: id, afterMs: UNDO_MS } });
  const route = currentRoute();
  if (route.view === "session" && route.id === id) go({ view: "latest" }, "replace");
}

export function undoDeletion(id: string): void {
  request({ type: "session.undelete", payload: { sessionId: id } });
  store.setState(({ leaving }) => ({ leaving: new Set([...leaving].filter((each) => each !== id)) }));
}

/** From now on where the agent can, else from the next turn; `null` is the default again. */
export function configureSession(sessionId: string, settings: Omit<SessionConfigure, "sessionId">): void {
  request({ type: "session.configure", payload: { sessionId, ...settings } });
}

export function renameSession(sessionId: string, title: string): void {
  request({ type: "session.rename", payload: { sessionId, title } });
}

export function archiveSession(sessionId: string, archived: boolean): void {
  request({ type: "session.archive", payload: { sessionId, archived } });
}

/** Replaces what waits, unless it has changed meanwhile: then the server refuses, and nothing is lost. */
export function changeQueue(
  sessionId: string,
  expected: readonly QueuedPrompt[],
  prompts: readonly QueuedPrompt[],
): void {
  request({
    type: "session.queue",
    payload: { sessionId, prompts: [...prompts], expected: [...expected] },
  });
}

/** Ends the process that drives the conversation from elsewhere; from then on it is driven here. */
export function takeOver(sessionId: string): void {
  request({ type: "session.takeover", payload: { sessionId } });
  forgetDriver(sessionId);
}

export function forgetDriver(sessionId: string): void {
  store.setState(({ drivers }) => ({ drivers: withoutKey(drivers, sessionId) }));
}

export function forkSession(sessionId: string): void {
  request({ type: "session.fork", payload: { sessionId } });
}

export function flushQueue(sessionId: string): void {
  request({ type: "session.flush", payload: { sessionId, afresh: true } });
}

let statisticsWanted = false;

/** The machine's figures, once a second, from now on. */
export function watchStatistics(): void {
  if (!statisticsWanted) request({ type: "statistics.subscribe" });
  statisticsWanted = true;
}
