/** The one connection to the server. The controller opens it; everything in this folder may send through it. */
import type { ClientEvent } from "../gen/events";
import { newId } from "../lib/id";
import type { EventSocket } from "../wire/socket";

let socket: EventSocket | undefined;

export function setSocket(opened: EventSocket): void {
  socket = opened;
}

/** Sends a command. False when offline: nothing was sent. What the command causes carries the same id. */
export function request(event: ClientEvent, commandId: string = newId()): boolean {
  return socket?.send(event, commandId) ?? false;
}

export function retryConnection(): void {
  socket?.retry();
}
