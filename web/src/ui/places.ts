/** The entries of the navigation, in their order. Each leads to a page. */
import {
  Activity,
  BookOpen,
  Bot,
  History,
  Inbox,
  KeyRound,
  Lightbulb,
  type LucideIcon,
  Plug,
  Puzzle,
  Sparkles,
  Webhook,
} from "lucide-react";
import type { PageName } from "../store/route";

export interface Place {
  readonly page: PageName;
  readonly icon: LucideIcon;
}

export const workPlaces: readonly Place[] = [
  { page: "inbox", icon: Inbox },
  { page: "history", icon: History },
  { page: "examples", icon: Lightbulb },
];

/** What Claude Code is and has, and who can get in. */
export const agentPlaces: readonly Place[] = [
  { page: "status", icon: Activity },
  { page: "docs", icon: BookOpen },
  { page: "agents", icon: Bot },
  { page: "skills", icon: Sparkles },
  { page: "mcp", icon: Plug },
  { page: "plugins", icon: Puzzle },
  { page: "hooks", icon: Webhook },
  { page: "access", icon: KeyRound },
];
