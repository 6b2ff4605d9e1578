/** What is typed for a new key, and the request that it becomes. Pure. */
import type { KeyApproval, KeyCeiling, KeyRequest, KeyScope, KeySees } from "../../gen/http";
import { permissionModes } from "../../session/modes";
import { parseTools } from "../../session/tools";

export const scopes: readonly KeyScope[] = ["read", "run", "approve"];
export const protections = ["none", "shield", "sandbox"] as const;
export const visibilities = ["own", "sessions", "folders", "all"] as const;
export const approvals = ["server", "ask", "auto"] as const;

export interface KeyDraft {
  readonly name: string;
  readonly scopes: readonly KeyScope[];
  readonly modes: readonly string[];
  readonly tools: string;
  /** One folder a line. */
  readonly roots: string;
  readonly budget: string;
  readonly protection: (typeof protections)[number];
  /** One folder a line, for a sandbox. */
  readonly sandboxFolders: string;
  /** One host a line, for a sandbox. */
  readonly sandboxHosts: string;
  readonly sees: (typeof visibilities)[number];
  readonly sessions: readonly string[];
  readonly folders: string;
  readonly approval: (typeof approvals)[number];
}

export const emptyDraft: KeyDraft = {
  name: "",
  scopes,
  modes: permissionModes,
  tools: "",
  roots: "",
  budget: "",
  protection: "none",
  sandboxFolders: "",
  sandboxHosts: "",
  sees: "own",
  sessions: [],
  folders: "",
  approval: "server",
};

export function toggled<T>(list: readonly T[], value: T): T[] {
  return list.includes(value) ? list.filter((each) => each !== value) : [...list, value];
}

const lines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** What is still missing or wrong, by the name of its message; nothing: it can be sent. */
export function problemOf(
  draft: KeyDraft,
): "name" | "scopes" | "modes" | "budget" | "sees" | "auto" | undefined {
  if (draft.name.trim() === "") return "name";
  if (draft.scopes.length === 0) return "scopes";
  if (draft.modes.length === 0) return "modes";
  const budget = draft.budget.trim();
  if (budget !== "" && !(Number(budget) > 0 && Number.isFinite(Number(budget)))) return "budget";
  if (draft.sees === "sessions" && draft.sessions.length === 0) return "sees";
  if (draft.sees === "folders" && lines(draft.folders).length === 0) return "sees";
  if (draft.approval === "auto" && !draft.scopes.includes("approve")) return "auto";
  return undefined;
}

/** What is left as it was sets no limit. */
export function requestOf(draft: KeyDraft): KeyRequest {
  const tools = parseTools(draft.tools);
  const roots = lines(draft.roots);
  const budget = draft.budget.trim();
  const ceiling: KeyCeiling = {
    ...(draft.modes.length < permissionModes.length && { modes: [...draft.modes] }),
    ...(tools.length > 0 && { tools }),
    ...(roots.length > 0 && { roots }),
    ...(budget !== "" && { budgetUsd: Number(budget) }),
    ...(draft.protection === "shield" && { shield: true }),
    ...(draft.protection === "sandbox" && sandboxOf(draft)),
    sees: seesOf(draft),
  };
  const approval: KeyApproval | undefined = draft.approval === "server" ? undefined : draft.approval;
  return {
    name: draft.name.trim(),
    scopes: [...draft.scopes],
    ceiling,
    ...(approval && { approval }),
  };
}

function sandboxOf(draft: KeyDraft): KeyCeiling {
  const [folders, hosts] = [lines(draft.sandboxFolders), lines(draft.sandboxHosts)];
  return {
    sandbox: true,
    ...(folders.length > 0 && { sandboxFolders: folders }),
    ...(hosts.length > 0 && { sandboxHosts: hosts }),
  };
}

function seesOf(draft: KeyDraft): KeySees {
  switch (draft.sees) {
    case "own":
    case "all":
      return draft.sees;
    case "sessions":
      return { sessions: [...draft.sessions] };
    case "folders":
      return { folders: lines(draft.folders) };
  }
}
