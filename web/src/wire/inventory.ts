/** What Claude Code has been given on the machine, as `/api/claude` tells it. */
import type { Inventory } from "../gen/inventory";
import { call } from "./api";

export const getInventory = (cwd: string | undefined): Promise<Inventory> =>
  call(cwd ? `/api/claude?cwd=${encodeURIComponent(cwd)}` : "/api/claude");
