/**
 * The page's own half of its sign-in. The server hands it over once, after `#` in the address, which is sent nowhere; it is
 * kept in the storage of this origin, which no other port of the host can read, and goes along with every call.
 */
import { readStored, writeStored } from "../lib/storage";

const NAME = "page";
const IN_ADDRESS = /^#k=([0-9a-f]+)$/;

/** For a browser whose storage is closed to us: good until the page is reloaded. */
let unstored: string | undefined;

/** Takes the secret out of the address. To be called before anything else reads that. */
export function takePageSecret(): void {
  const secret = IN_ADDRESS.exec(location.hash)?.[1];
  if (!secret) return;
  unstored = secret;
  writeStored(NAME, secret);
  history.replaceState(null, "", location.pathname + location.search);
}

export function forgetPageSecret(): void {
  unstored = undefined;
  writeStored(NAME, undefined);
}

/** Read each time: another tab may have signed in meanwhile. */
const pageSecret = (): string | undefined => readStored(NAME) ?? unstored;

export function pageHeaders(): Record<string, string> {
  const secret = pageSecret();
  return secret ? { "X-Tiller-Page": secret } : {};
}

/** A WebSocket can't have headers, but it can offer protocols. */
export function socketProtocols(): string[] {
  const secret = pageSecret();
  return secret ? ["tiller.v1", `page.${secret}`] : ["tiller.v1"];
}
