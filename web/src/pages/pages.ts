/** The pages beside the sessions, each loaded when it is first opened. */
import type { ComponentType } from "react";
import { onDemand } from "../lib/onDemand";
import type { PageName } from "../store/route";
import { Opening } from "../conversation/Opening";

const load = (pick: () => Promise<ComponentType>) =>
  onDemand<object>(async () => ({ default: await pick() }), Opening);

const inventory = () => import("./InventoryPages");

export const pages: Record<PageName, ComponentType> = {
  inbox: load(async () => (await import("./InboxPage")).InboxPage),
  examples: load(async () => (await import("./ExamplesPage")).ExamplesPage),
  status: load(async () => (await import("./StatusPage")).StatusPage),
  docs: load(async () => (await import("./DocsPage")).DocsPage),
  agents: load(async () => (await import("./AgentsPage")).AgentsPage),
  skills: load(async () => (await inventory()).SkillsPage),
  mcp: load(async () => (await inventory()).McpPage),
  plugins: load(async () => (await inventory()).PluginsPage),
  hooks: load(async () => (await inventory()).HooksPage),
  shortcuts: load(async () => (await import("./ShortcutsPage")).ShortcutsPage),
  history: load(async () => (await import("../history/HistoryPage")).HistoryPage),
};
