/** The one connection to the server. The controller opens it; everything in this folder may send through it. */
import type { ClientEvent } from "../gen/events";
import type { EventSocket } from "../wire/socket";

let socket: EventSocket | undefined;

export function setSocket(opened: EventSocket): void {
  socket = opened;
}

/** False when offline: nothing was sent. */
export function request(event: ClientEvent): boolean {
  return socket?.send(event) ?? false;
}

export function retryConnection(): void {
  socket?.retry();
}
