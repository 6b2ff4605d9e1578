/** The MCP servers of a session. Pure. */
import type { Init } from "../gen/messages";
import { asObjects, asString } from "../wire/json";

export interface LiveServer {
  readonly name: string;
  readonly status: string;
}

export function serversOf(init: Init | undefined): LiveServer[] {
  return asObjects(init?.mcp_servers).flatMap((server) => {
    const name = asString(server.name);
    return name ? [{ name, status: asString(server.status) ?? "" }] : [];
  });
}
