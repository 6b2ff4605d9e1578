/** The calls beside the event stream. */
import { pageHeaders } from "./pageSecret";

export interface Backend {
  readonly name: string;
  readonly version?: string | null;
  readonly transport?: string | null;
  /** In English; `why` is for saying it in another language. */
  readonly reason?: string | null;
  readonly why?: string | null;
  /** Where it was found. */
  readonly path?: string | null;
}

export interface System {
  readonly version: string;
  readonly backend: Backend;
  /** The default working directory. */
  readonly cwd?: string;
  readonly roots?: readonly string[];
  readonly cpuModel?: string;
  readonly totalMemoryGB?: number;
  /** In GB. */
  readonly totalStorage?: number;
}

export interface Directory {
  readonly path: string;
  readonly parent: string | null;
  readonly entries: readonly { readonly name: string; readonly path: string }[];
}

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
  if (response.ok) return response;
  const body = (await response.json().catch(() => undefined)) as
    | { error?: { code?: string; message?: string } }
    | undefined;
  throw new ApiError(
    response.status,
    body?.error?.code ?? "internal",
    body?.error?.message ?? response.statusText,
  );
}

export const getSystem = (): Promise<System> => call("/api/system");

export const getRecentFolders = async (limit: number): Promise<string[]> =>
  (await call<{ cwds: string[] }>(`/api/recent-cwds?limit=${limit}`)).cwds;

export const getDirectory = (path: string | undefined): Promise<Directory> =>
  call(path ? `/api/directories?path=${encodeURIComponent(path)}` : "/api/directories");

/** A browser that is signed in. */
export interface SignIn {
  readonly id: string;
  readonly userAgent: string;
  readonly address: string;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  /** Whether it is this one. */
  readonly current: boolean;
}

export const getSignIns = async (): Promise<readonly SignIn[]> =>
  (await call<{ signIns: SignIn[] }>("/api/sign-ins")).signIns;

/** Signs out one browser, or all. */
export const signOut = (which: { id: string } | { all: true }): Promise<unknown> =>
  call("/api/sign-out", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(which),
  });
