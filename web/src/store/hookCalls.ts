/**
 * What the page wants to be called back for, and the callbacks that wait. Both are kept for a reload: the server forgets the
 * first when it ends, and tells the second only once.
 */
import { create } from "zustand";
import type { HookEvent } from "../gen/events";
import { readStored, writeStored } from "../lib/storage";
import { request } from "./connection";
import type { Json } from "../wire/json";
import {
  type Callback,
  type ClosedCallback,
  type HookCall,
  hookEvents,
  PATIENCE_MS,
  stillWaiting,
  withCall,
  withoutCall,
} from "../session/hookCalls";

interface HooksState {
  readonly calls: readonly HookCall[];
  /** By session. */
  readonly wanted: ReadonlyMap<string, readonly HookEvent[]>;
}

export const useHooks = create<HooksState>()(() => ({
  calls: stillWaiting(readCalls(), Date.now()),
  wanted: readWanted(),
}));

useHooks.subscribe(({ calls, wanted }) => {
  writeStored("hookCalls", calls.length > 0 ? JSON.stringify(calls) : undefined);
  writeStored("hooks", wanted.size > 0 ? JSON.stringify([...wanted]) : undefined);
});
for (const { until } of useHooks.getState().calls) forgetAt(until);

function readCalls(): readonly HookCall[] {
  return parse(readStored("hookCalls")) as HookCall[];
}

function readWanted(): HooksState["wanted"] {
  const stored = parse(readStored("hooks")) as [string, string[]][];
  return new Map(stored.map(([id, events]) => [id, hookEvents.filter((event) => events.includes(event))]));
}

function parse(text: string | undefined): unknown[] {
  try {
    const value: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

/** From the session's next turn on. */
export function wantHooks(sessionId: string, events: readonly HookEvent[]): void {
  useHooks.setState(({ wanted }) => {
    const next = new Map(wanted);
    if (events.length > 0) next.set(sessionId, events);
    else next.delete(sessionId);
    return { wanted: next };
  });
  register(sessionId, events);
}

/** After every (re)connect: the server may be another. */
export function registerHooks(): void {
  for (const [sessionId, events] of useHooks.getState().wanted) register(sessionId, events);
}

export function forgetHooks(sessionId: string): void {
  const { wanted } = useHooks.getState();
  if (!wanted.has(sessionId)) return;
  useHooks.setState({ wanted: new Map([...wanted].filter(([id]) => id !== sessionId)) });
}

function register(sessionId: string, events: readonly HookEvent[]): void {
  request({ type: "session.hooks", payload: { sessionId, events: [...events] } });
}

export function acceptCallback(callback: Callback): void {
  const now = Date.now();
  useHooks.setState(({ calls }) => ({ calls: withCall(stillWaiting(calls, now), callback, now) }));
  forgetAt(now + PATIENCE_MS);
}

function forgetAt(time: number): void {
  setTimeout(
    () => useHooks.setState(({ calls }) => ({ calls: stillWaiting(calls, Date.now()) })),
    time - Date.now() + 50,
  );
}

/** Answered here, elsewhere or not at all: nobody waits for it any more. */
export function closeCallback(closed: ClosedCallback): void {
  useHooks.setState(({ calls }) => ({ calls: withoutCall(calls, closed) }));
}

/** The turn is over, so nobody waits any more. */
export function dropCalls(sessionId: string): void {
  const { calls } = useHooks.getState();
  if (calls.some((call) => call.sessionId === sessionId))
    useHooks.setState({ calls: calls.filter((call) => call.sessionId !== sessionId) });
}

/** False when offline: it still waits. */
export function answerCallback(call: HookCall, output: Json): boolean {
  const { sessionId, callbackId } = call;
  const sent = request({ type: "hook.response", payload: { sessionId, callbackId, output } });
  if (sent) useHooks.setState(({ calls }) => ({ calls: withoutCall(calls, call) }));
  return sent;
}
