/** What Claude Code has been given on the machine, as `/api/claude` tells it. */
import { call } from "./api";

export type Scope = "user" | "project" | "local" | "plugin";

export interface Described {
  readonly name: string;
  readonly description?: string;
  readonly scope: Scope;
  readonly path: string;
}

export interface McpServer {
  readonly name: string;
  readonly scope: Scope;
  readonly transport: string;
  readonly target: string;
  readonly environment: readonly string[];
  readonly headers: readonly string[];
}

export interface Plugin {
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly enabled: boolean;
  readonly path: string;
}

export interface Hook {
  readonly event: string;
  readonly matcher?: string;
  readonly kind: string;
  readonly command: string;
  readonly timeout?: number;
  readonly scope: Scope;
  readonly path: string;
}

export interface Inventory {
  readonly cwd: string;
  readonly claudeHome: string;
  readonly login?: "subscription" | "apiKey";
  readonly skills: readonly Described[];
  readonly commands: readonly Described[];
  readonly agents: readonly Described[];
  readonly mcpServers: readonly McpServer[];
  readonly plugins: readonly Plugin[];
  readonly hooks: readonly Hook[];
  readonly problems: readonly string[];
}

export const getInventory = (cwd: string | undefined): Promise<Inventory> =>
  call(cwd ? `/api/claude?cwd=${encodeURIComponent(cwd)}` : "/api/claude");
