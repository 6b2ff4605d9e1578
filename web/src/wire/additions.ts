/** What the page says and hears beyond the generated types. */
import type { UiContext } from "../conversation/context";
import type {
  Approval,
  ClientEvent,
  PermissionMode,
  ServerEvent,
  SessionInfo,
  SessionStart,
} from "../gen/events";

export interface Attachment {
  readonly mediaType: string;
  /** base64 */
  readonly data: string;
  readonly name?: string;
}

export interface Settings {
  readonly model?: string | null;
  readonly permissionMode?: PermissionMode | null;
  readonly approval?: Approval | null;
  readonly effort?: string | null;
  readonly allowedTools?: string | null;
  readonly maxBudgetUsd?: number | null;
  readonly maxTurns?: number | null;
}

export interface NewSession extends SessionStart {
  effort?: string;
  maxTurns?: number;
  maxBudgetUsd?: number;
  resume?: string;
  attachments?: readonly Attachment[];
  context?: UiContext;
}

export type Subject =
  | "contextUsage"
  | "mcpStatus"
  | "fileSuggestions"
  | "commands"
  | "models"
  | "permissionRules"
  | "hooks"
  | "usage"
  | "settings";

export type Request =
  | ClientEvent
  | { type: "session.start"; payload: NewSession }
  | {
      type: "session.continue";
      payload: {
        sessionId: string;
        prompt: string;
        attachments?: readonly Attachment[];
        context?: UiContext;
      };
    }
  | { type: "session.configure"; payload: { sessionId: string } & Settings }
  | { type: "session.rename"; payload: { sessionId: string; title: string } }
  | { type: "session.archive"; payload: { sessionId: string; archived: boolean } }
  | { type: "session.queue"; payload: { sessionId: string; prompts: string[]; expected?: string[] } }
  | { type: "session.flush"; payload: { sessionId: string } }
  | { type: "session.fork"; payload: { sessionId: string; title?: string } }
  | { type: "session.rewind"; payload: { sessionId: string; userMessageId: string; dryRun: boolean } }
  | {
      type: "session.inquire";
      payload: { sessionId: string; requestId: string; subject: Subject; query?: string };
    }
  | { type: "session.delete"; payload: { sessionId: string; afterMs?: number } }
  | { type: "session.undelete"; payload: { sessionId: string } };

export interface Rewound {
  readonly sessionId: string;
  readonly userMessageId: string;
  readonly dryRun: boolean;
  readonly canRewind: boolean;
  readonly filesChanged: string[];
  readonly insertions: number;
  readonly deletions: number;
  readonly error?: string;
}

export interface Answer {
  readonly sessionId: string;
  readonly requestId: string;
  readonly subject: string;
  readonly data?: unknown;
  readonly error?: string;
}

export type Reply =
  | ServerEvent
  | { type: "session.forked"; payload: { sessionId: string; newSessionId: string } }
  | { type: "session.rewound"; payload: Rewound }
  | { type: "session.answer"; payload: Answer }
  | { type: "session.updated"; payload: { session: SessionInfo } };

export interface Extras {
  readonly archived?: boolean;
  readonly settings?: Settings;
  readonly agent?: { readonly state: string; readonly memoryBytes?: number; readonly cpu?: number };
  readonly queue?: readonly string[];
}
export const extras = (session: SessionInfo): Extras => session as SessionInfo & Extras;

/** Whether the server takes what is listed here beyond the generated types: one that does tells a session's settings. */
export const knowsMore = (session: SessionInfo | undefined): boolean =>
  session !== undefined && extras(session).settings !== undefined;
