/** The pages beside the sessions, each loaded when it is first opened. */
import type { ComponentType } from "react";
import { onDemand } from "../lib/onDemand";
import type { PageName } from "../store/route";
import { Opening } from "../ui/Opening";

const load = (pick: () => Promise<ComponentType>) =>
  onDemand<object>(async () => ({ default: await pick() }), Opening);

const inventory = () => import("../features/pages/InventoryPages");

export const pages: Record<PageName, ComponentType> = {
  inbox: load(async () => (await import("../features/pages/InboxPage")).InboxPage),
  examples: load(async () => (await import("../features/pages/ExamplesPage")).ExamplesPage),
  status: load(async () => (await import("../features/pages/StatusPage")).StatusPage),
  docs: load(async () => (await import("../features/pages/DocsPage")).DocsPage),
  agents: load(async () => (await import("../features/pages/AgentsPage")).AgentsPage),
  skills: load(async () => (await inventory()).SkillsPage),
  mcp: load(async () => (await inventory()).McpPage),
  plugins: load(async () => (await inventory()).PluginsPage),
  hooks: load(async () => (await inventory()).HooksPage),
  access: load(async () => (await import("../features/access/AccessPage")).AccessPage),
  shortcuts: load(async () => (await import("../features/pages/ShortcutsPage")).ShortcutsPage),
  history: load(async () => (await import("../features/history/HistoryPage")).HistoryPage),
};
