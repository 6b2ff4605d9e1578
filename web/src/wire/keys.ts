/** The keys for programs. */
import type {
  KeyCreated,
  KeyEntry,
  KeyList,
  KeyRequest,
  KeyRevocation,
  KeySessions,
  Success,
} from "../gen/http";
import { call } from "./api";

const post = (body: KeyRequest | KeyRevocation): RequestInit => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

export const getKeys = async (): Promise<readonly KeyEntry[]> => (await call<KeyList>("/api/keys")).keys;

/** The names of the keys that this tab makes or has made: it need not be told of them. */
const own = new Set<string>();

export async function createKey(request: KeyRequest): Promise<KeyCreated> {
  // The server may announce it before it answers.
  own.add(request.name);
  try {
    return await call<KeyCreated>("/api/keys", post(request));
  } catch (error) {
    own.delete(request.name);
    throw error;
  }
}

/** Whether this tab has made the key of that name. Each is asked about once. */
export const isOwnKey = (name: string): boolean => own.delete(name);

export const revokeKey = (id: string, sessions: KeySessions): Promise<Success> =>
  call("/api/keys/revoke", post({ id, sessions }));
