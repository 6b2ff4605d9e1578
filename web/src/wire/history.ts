/** The calls of the history. */
import type {
  HistoryEntries,
  HistoryProjects,
  HistorySessions,
  SearchPage,
  Session,
  UsageReport,
  VaultState,
} from "../gen/history";
import { call } from "./api";
import { query } from "../lib/query";

type Values = Readonly<Record<string, string | number | undefined>>;

export const getProjects = (): Promise<HistoryProjects> => call("/api/history/projects");

export const getSessions = (values: Values): Promise<HistorySessions> =>
  call(`/api/history/sessions${query(values)}`);

/** The messages, in the form of a live session. */
export const getEntries = (id: string, values: Values): Promise<HistoryEntries> =>
  call(
    `/api/history/sessions/${encodeURIComponent(id)}${query({ as: "entries", include: "all", ...values })}`,
  );

export const search = (values: Values): Promise<SearchPage> => call(`/api/history/search${query(values)}`);

export const getUsage = (values: Values): Promise<UsageReport> => call(`/api/history/usage${query(values)}`);

export const getVault = (values: Values = {}): Promise<VaultState> =>
  call(`/api/history/vault${query(values)}`);

export const turnVault = (enabled: boolean): Promise<VaultState> =>
  call("/api/history/vault", {
    method: "PUT",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ enabled }),
  });

export const restore = (id: string): Promise<Session> =>
  call(`/api/history/vault/${encodeURIComponent(id)}/restore`, { method: "POST" });

/** Ends the program that works on a conversation elsewhere. */
export const takeOverConversation = (id: string): Promise<Session> =>
  call(`/api/history/sessions/${encodeURIComponent(id)}/takeover`, { method: "POST" });

export const exportAddress = (id: string, format: "markdown" | "html" | "json"): string =>
  `/api/history/sessions/${encodeURIComponent(id)}/export${query({ format, include: "conversation" })}`;

export const resultAddress = (id: string, name: string): string =>
  `/api/history/sessions/${encodeURIComponent(id)}/tool-results/${encodeURIComponent(name)}`;
