/**
 * The connection to the event API. It reconnects by itself, tells when it is open, and hands on frames; what has to be
 * asked again after a reconnect is the owner's business.
 */
import type { ClientEvent, ServerEvent } from "../gen/events";
import { socketProtocols } from "./pageSecret";

export type Connection = "connecting" | "open" | "offline";

export interface SocketHandlers {
  onOpen(): void;
  onEvent(frame: ServerEvent): void;
  onConnection(connection: Connection): void;
}

export interface EventSocket {
  /** False when the connection is not open: nothing was sent, and nothing will be. */
  send(event: ClientEvent, commandId: string): boolean;
  /** Try again now instead of when the pause is over. */
  retry(): void;
  close(): void;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;

/** The pause before the given attempt: doubling, and spread so that many pages do not return at the same moment. */
export function pauseBefore(attempt: number, random: () => number = Math.random): number {
  const full = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
  return full / 2 + (full / 2) * random();
}

export function connectEvents(url: string, handlers: SocketHandlers): EventSocket {
  let socket: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let attempt = 0;
  let closed = false;

  function open(): void {
    clearTimeout(timer);
    const opened = new WebSocket(url, socketProtocols());
    socket = opened;
    opened.addEventListener("open", () => {
      attempt = 0;
      handlers.onConnection("open");
      handlers.onOpen();
    });
    opened.addEventListener("message", ({ data }) => {
      const event = parseEvent(data);
      if (event) handlers.onEvent(event);
    });
    opened.addEventListener("close", () => {
      if (closed || socket !== opened) return;
      handlers.onConnection("offline");
      timer = setTimeout(open, pauseBefore(attempt));
      attempt += 1;
    });
  }

  function retry(): void {
    // One that is closing is heard to its end first; trying again is then a matter of the shortest pause.
    if (closed || socket?.readyState !== WebSocket.CLOSED) return;
    open();
  }

  handlers.onConnection("connecting");
  open();
  // The network's return and the page's return are the moments when waiting longer makes no sense.
  window.addEventListener("online", retry);
  document.addEventListener("visibilitychange", retry);

  return {
    send(event, commandId) {
      if (socket?.readyState !== WebSocket.OPEN) return false;
      socket.send(JSON.stringify({ ...event, commandId }));
      return true;
    },
    retry,
    close() {
      closed = true;
      clearTimeout(timer);
      window.removeEventListener("online", retry);
      document.removeEventListener("visibilitychange", retry);
      socket?.close();
    },
  };
}

/** Frames of a kind that this page does not know are passed over. */
export function parseEvent(data: unknown): ServerEvent | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const parsed: unknown = JSON.parse(data);
    return typeof parsed === "object" && parsed !== null && "type" in parsed
      ? (parsed as ServerEvent)
      : undefined;
  } catch {
    return undefined;
  }
}
