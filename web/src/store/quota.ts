/** The limits of the account, as agents have reported them to this page, kept for its next visit. */
import { create } from "zustand";
import type { ServerEvent } from "../gen/events";
import { readStored, writeStored } from "../lib/storage";
import { limitsOf, type Quota, readQuota, withLimits } from "../session/quota";

const KEY = "quota";

export const useQuota = create<{ readonly quota: Quota }>()(() => ({ quota: readQuota(readStored(KEY)) }));

export function noteLimits(events: readonly ServerEvent[]): void {
  const { quota } = useQuota.getState();
  const next = events.reduce(
    (known, event) =>
      event.type === "stream.message" ? withLimits(known, limitsOf(event.payload.message)) : known,
    quota,
  );
  if (next === quota) return;
  useQuota.setState({ quota: next });
  writeStored(KEY, JSON.stringify(next));
}
