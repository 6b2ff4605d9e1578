/** The calls beside the event stream. */
import type {
  DecisionFile,
  Directories,
  ErrorBody,
  RecentCwds,
  SignInEntry,
  SignIns,
  System,
} from "../gen/http";
import { noteServerTime } from "../lib/serverClock";
import { pageHeaders } from "./pageSecret";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The language of error messages. Set once the page knows which one it speaks. */
let language = "en";
export function setApiLanguage(value: string): void {
  language = value;
}

export async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await request(path, init);
  return (await response.json()) as T;
}

/** A call with everything that lets the page in. A refusal is thrown. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(path, {
    ...init,
    headers: { ...init.headers, ...pageHeaders(), "Accept-Language": language },
    credentials: "same-origin",
  });
  const date = response.headers.get("Date");
  if (date) noteServerTime(Date.parse(date));
  if (response.ok) return response;
  const body = (await response.json().catch(() => undefined)) as Partial<ErrorBody> | undefined;
  throw new ApiError(
    response.status,
    body?.error?.code ?? "internal",
    body?.error?.message ?? response.statusText,
  );
}

export const getSystem = (): Promise<System> => call("/api/system");

export const getRecentFolders = async (limit: number): Promise<string[]> =>
  (await call<RecentCwds>(`/api/recent-cwds?limit=${limit}`)).cwds;

export const getDirectory = (path: string | undefined): Promise<Directories> =>
  call(path ? `/api/directories?path=${encodeURIComponent(path)}` : "/api/directories");

/** The file that a waiting decision would change, as it is now; null if there is none yet. */
export const getDecisionFile = async (session: string, decision: string): Promise<string | null> =>
  (await call<DecisionFile>(`/api/sessions/${session}/decisions/${decision}/file`)).content;

/** A browser that is signed in. */
export const getSignIns = async (): Promise<readonly SignInEntry[]> =>
  (await call<SignIns>("/api/sign-ins")).signIns;

/** Signs out one browser, or all. */
export const signOut = (which: { id: string } | { all: true }): Promise<unknown> =>
  call("/api/sign-out", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(which),
  });
