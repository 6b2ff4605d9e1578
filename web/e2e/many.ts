/** A server with as many sessions as a test wants: its side of the socket is played here. */
import type { Page } from "@playwright/test";
import { expect, type Product } from "./product";
import { standIn, type StandIn } from "./socket";

const PAGE = 500;
const PROJECTS = ["shop", "web", "billing", "docs", "infra", "mobile", "search", "auth"];
export const idOf = (number: number) => `5e551000-0000-4000-8000-${String(number).padStart(12, "0")}`;

function sessionOf(number: number, count: number) {
  // A few wait, a few run; the one that waits longest stands at the very end of the list.
  const waits = number === 2 || number === count - 1;
  const runs = number % Math.ceil(count / 4) === 3;
  return {
    id: idOf(number),
    title: `${["Fix", "Review", "Refactor", "Explain"][number % 4]} part ${number}`,
    status: runs || waits ? "running" : "completed",
    cwd: `/home/u/${PROJECTS[number % PROJECTS.length]}`,
    createdAt: 1_000_000 - number,
    updatedAt: 1_000_000 - number,
    permissionMode: "default",
    approval: "ask",
    settings: { permissionMode: "default", approval: "ask" },
    archived: false,
    pending: waits ? 1 : 0,
    queue: [],
    agent: { state: "absent" },
    lastSeq: 1,
  };
}

interface Asked {
  type: string;
  commandId: string;
  payload: { sessionId: string; limit?: number; cursor?: string; only?: string };
}

/** What a server with that many sessions answers. */
const answers = (count: number) =>
  function* ({ type, commandId, payload }: Asked): Generator<object> {
    const all = () => Array.from({ length: count }, (_, number) => sessionOf(number, count));
    if (type === "session.list") {
      if (payload.only) {
        const pinned = [7, count - 3].map(idOf);
        const sessions = all().filter(({ id, pending, status }) =>
          payload.only === "waiting"
            ? pending > 0
            : payload.only === "running"
              ? status === "running"
              : pinned.includes(id),
        );
        yield { type, commandId, payload: { sessions } };
        return;
      }
      const from = Number(payload.cursor ?? 0);
      const to = Math.min(count, from + Math.min(payload.limit ?? count, PAGE));
      const more = to < count && { nextCursor: String(to) };
      yield { type, commandId, payload: { sessions: all().slice(from, to), ...more } };
    }
    if (type === "arrangement.get")
      yield {
        type: "arrangement",
        commandId,
        payload: {
          sorting: "activity",
          groups: [{ id: idOf(900_000), name: "Release 2.0", place: 1 }],
          sessions: [
            { sessionId: idOf(7), pinned: 1, tags: ["urgent"] },
            { sessionId: idOf(count - 3), pinned: 2, tags: [] },
            { sessionId: idOf(9), group: idOf(900_000), tags: ["late", "backend", "api"] },
            { sessionId: idOf(10), group: idOf(900_000), tags: [] },
          ],
        },
      };
    if (type === "session.history")
      yield {
        type,
        commandId,
        payload: {
          sessionId: payload.sessionId,
          status: "completed",
          messages: [{ type: "user_prompt", prompt: "Look at it", promptId: "p1" }],
          seqs: [1],
          kinds: ["user_prompt"],
          lastSeq: 1,
          pending: [],
          queue: [],
          queueItems: [],
        },
      };
    if (type === "session.subscribe")
      yield {
        type: "stream.user_prompt",
        payload: { sessionId: payload.sessionId, seq: 1, prompt: "Look at it", promptId: "p1", uuid: "p1" },
      };
  };

export async function opened(page: Page, product: Product, count: number): Promise<StandIn> {
  const link = await product.start("demo");
  const server = await standIn<Asked>(new URL(link).origin, answers(count));
  await page.goto(link.replace(new URL(link).origin, server.origin));
  await expect(list(page).getByRole("button", { name: /(Needs you|等你处理) 2/ })).toBeVisible();
  return server;
}

export const list = (page: Page) => page.getByRole("region", { name: /^(Sessions|会话)$/ });
export const row = (page: Page, title: string) =>
  list(page).getByRole("link", { name: new RegExp(`${title}\\b`) });
