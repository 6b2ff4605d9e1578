/** What the history page shows, as it stands in the address behind `#/history`. */
import { query } from "../../lib/query";

export interface Filters {
  /** Words to search for in all messages. */
  readonly q?: string;
  readonly project?: string;
  readonly tool?: string;
  readonly file?: string;
  readonly model?: string;
  /** The last so many days. */
  readonly days?: string;
}

export type View =
  | { readonly view: "list"; readonly filters: Filters }
  /** `at` is the message to open at. */
  | {
      readonly view: "session";
      readonly id: string;
      readonly at?: string;
      /** Opened to go on with it, not only to read. */
      readonly goOn?: boolean;
    }
  | { readonly view: "usage"; readonly days?: string; readonly by?: string };

const filterNames = ["q", "project", "tool", "file", "model", "days"] as const;
export type FilterName = (typeof filterNames)[number];

export function parseView(rest: string): View {
  const [path = "", asked = ""] = rest.split("?", 2);
  const given = new URLSearchParams(asked);
  const text = (name: string) => given.get(name) || undefined;
  const id = /^\/s\/([\p{L}\p{N}._-]+)$/u.exec(path)?.[1];
  if (id) return { view: "session", id, at: text("at"), ...(text("continue") && { goOn: true }) };
  if (path === "/usage") return { view: "usage", days: text("days"), by: text("by") };
  const filters = Object.fromEntries(filterNames.flatMap((name) => (text(name) ? [[name, text(name)]] : [])));
  return { view: "list", filters };
}

export function viewAddress(view: View): string {
  switch (view.view) {
    case "session":
      return `/s/${view.id}${query({ at: view.at, continue: view.goOn ? "1" : undefined })}`;
    case "usage":
      return `/usage${query({ days: view.days, by: view.by })}`;
    case "list":
      return query({ ...view.filters });
  }
}

export const viewHref = (view: View): string => `#/history${viewAddress(view)}`;

const DAY = 86_400_000;

/** What the server is asked for: days become a time, rounded so that the same question has the same address. */
export function serverFilters(filters: Filters, now: number): Record<string, string | number | undefined> {
  const { days, ...rest } = filters;
  const count = Number(days);
  const from = count > 0 ? Math.floor((now - count * DAY) / 60_000) * 60_000 : undefined;
  return { ...rest, from };
}
