/**
 * How much of an account's limits is used, from what agents report of them. Pure.
 *
 * A window is known by the time at which it ends. Within one window usage only grows, so of two reports the larger counts,
 * in whatever order they are read: live, from a replay, or from what this browser remembers.
 */
import { asNumber, asObject, asString } from "../wire/json";
import { readMessage } from "./message";

export interface Limit {
  /** The agent's name for it: `five_hour`, `seven_day` and so on. */
  readonly name: string;
  /** How much of it is used, from 0 to 1. */
  readonly used: number;
  /** When it starts anew, in milliseconds since 1970. */
  readonly resetsAt: number;
}

export type Quota = readonly Limit[];

/** The limits that a message reports; none for most messages. */
export function limitsOf(raw: unknown): Quota {
  const message = readMessage(raw);
  if (message.type !== "rate_limit_event") return [];
  const info = asObject(message.rate_limit_info);
  const windows = Object.entries(asObject(info?.unifiedWindows) ?? {});
  const own = [asString(info?.rateLimitType) ?? "", info] as const;
  const told = [...windows, own].flatMap(([name, window]) => limitOf(name, asObject(window)) ?? []);
  // What has been reached is used up, whatever the figure says.
  return told.map((limit) =>
    info?.status === "rejected" && limit.name === info.rateLimitType ? { ...limit, used: 1 } : limit,
  );
}

function limitOf(name: string, window: Readonly<Record<string, unknown>> | undefined): Limit | undefined {
  const used = asNumber(window?.utilization) ?? (window?.status === "rejected" ? 1 : undefined);
  const seconds = asNumber(window?.resetsAt);
  if (name === "" || used === undefined || seconds === undefined) return undefined;
  return { name, used: Math.min(1, Math.max(0, used)), resetsAt: seconds * 1000 };
}

/** The same list if it says nothing new. */
export function withLimits(quota: Quota, told: Quota): Quota {
  return told.reduce<Quota>((known, limit) => {
    const before = known.find(({ name }) => name === limit.name);
    const isNews =
      !before ||
      limit.resetsAt > before.resetsAt ||
      (limit.resetsAt === before.resetsAt && limit.used > before.used);
    return isNews ? [...known.filter(({ name }) => name !== limit.name), limit] : known;
  }, quota);
}

/** The limits whose windows have not ended, the shorter ones first. */
export const currentLimits = (quota: Quota, now: number): Quota =>
  quota.filter(({ resetsAt }) => resetsAt > now).toSorted((a, b) => a.resetsAt - b.resetsAt);

/** What was written down earlier, if it can be read. */
export function readQuota(stored: string | undefined): Quota {
  try {
    const list: unknown = JSON.parse(stored ?? "[]");
    if (!Array.isArray(list)) return [];
    return list.flatMap((each) => {
      const limit = asObject(each);
      const name = asString(limit?.name);
      const used = asNumber(limit?.used);
      const resetsAt = asNumber(limit?.resetsAt);
      return name === undefined || used === undefined || resetsAt === undefined
        ? []
        : [{ name, used, resetsAt }];
    });
  } catch {
    return [];
  }
}
