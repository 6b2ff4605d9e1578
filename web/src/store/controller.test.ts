/** The controller against a connection that breaks. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SessionInfo } from "../gen/events";
import type { SocketHandlers } from "../wire/socket";

interface Frame {
  readonly type: string;
  readonly commandId?: string;
  readonly payload?: Record<string, unknown>;
}

const wire = vi.hoisted(() => ({
  handlers: undefined as SocketHandlers | undefined,
  open: false,
  sent: [] as Frame[],
}));

vi.mock("../wire/socket", () => ({
  connectEvents(_url: string, handlers: SocketHandlers) {
    wire.handlers = handlers;
    return {
      send(event: Frame, commandId: string) {
        if (wire.open) wire.sent.push({ ...event, commandId });
        return wire.open;
      },
      retry() {},
      close() {},
    };
  },
}));
vi.mock("../wire/api", () => ({
  ApiError: class extends Error {},
  getSystem: () => new Promise(() => {}),
}));

const session: SessionInfo = {
  id: "a",
  title: "A",
  status: "idle",
  cwd: "/p",
  createdAt: 1,
  updatedAt: 1,
  permissionMode: "default",
  approval: "ask",
  settings: { permissionMode: "default", approval: "ask" },
  archived: false,
  queue: [],
  agent: { state: "absent" },
  pending: 0,
  lastSeq: 0,
};

beforeEach(() => {
  vi.resetModules();
  vi.stubGlobal("location", { protocol: "http:", host: "x", search: "", hash: "", pathname: "/" });
  vi.stubGlobal("document", { visibilityState: "visible", hasFocus: () => true });
  vi.stubGlobal("history", { pushState() {}, replaceState() {} });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("dispatchEvent", () => {});
  vi.stubGlobal("HashChangeEvent", Event);
  // Every frame of the server is taken at once.
  vi.stubGlobal("requestAnimationFrame", (call: (now: number) => void) => {
    call(Number.MAX_SAFE_INTEGER);
    return undefined;
  });
  vi.stubGlobal("cancelAnimationFrame", () => {});
  wire.sent = [];
});
afterEach(() => vi.unstubAllGlobals());

async function connected() {
  const controller = await import("./controller");
  const { store } = await import("./state");
  const errors: string[] = [];
  controller.connect((message) => errors.push(message));
  const open = () => {
    wire.open = true;
    wire.handlers?.onConnection("open");
    wire.handlers?.onOpen();
  };
  const hear = (frame: object) => wire.handlers?.onEvent(frame as never);
  open();
  hear({ type: "session.list", payload: { sessions: [session] } });
  return {
    controller,
    store,
    errors,
    hear,
    /** What has been sent of this type since the last look, oldest first. */
    sent(type: string): Frame[] {
      const found = wire.sent.filter((frame) => frame.type === type);
      wire.sent = wire.sent.filter((frame) => frame.type !== type);
      return found;
    },
    breakConnection() {
      wire.open = false;
      wire.handlers?.onConnection("offline");
    },
    open,
  };
}

describe("a prompt whose connection breaks", () => {
  it("is sent again under the same ids, and acknowledged once", async () => {
    const { controller, store, sent, breakConnection, open, hear } = await connected();
    controller.continueSession("a", "do it");
    const [first] = sent("session.continue");
    breakConnection();
    open();
    const [second, ...more] = sent("session.continue");
    expect(second).toEqual(first);
    expect(more).toEqual([]);
    expect(first?.payload).toMatchObject({ sessionId: "a", prompt: "do it" });
    expect(first?.payload?.promptId).toMatch(/^[0-9a-f-]{36}$/);

    // The first one had arrived after all: the server only tells how the session stands.
    hear({
      type: "session.status",
      commandId: second?.commandId,
      payload: { sessionId: "a", status: "running", seq: 2 },
    });
    expect(store.getState().outbox).toEqual({ sending: new Map(), returned: new Map() });
    breakConnection();
    open();
    expect(sent("session.continue")).toEqual([]);
  });

  it("is not sent again if it was acknowledged before", async () => {
    const { controller, sent, breakConnection, open, hear } = await connected();
    controller.continueSession("a", "do it");
    const [first] = sent("session.continue");
    hear({
      type: "stream.user_prompt",
      payload: { sessionId: "a", prompt: "do it", promptId: first?.payload?.promptId, uuid: "u", seq: 1 },
    });
    breakConnection();
    open();
    expect(sent("session.continue")).toEqual([]);
  });

  it("is one session, if it was to begin one", async () => {
    const { controller, store, sent, breakConnection, open, hear } = await connected();
    controller.startSession({ prompt: "begin", cwd: "/p" });
    const [first] = sent("session.start");
    breakConnection();
    open();
    const [second] = sent("session.start");
    expect(second).toEqual(first);
    hear({
      type: "session.started",
      commandId: second?.commandId,
      payload: { sessionId: "b", requestId: second?.payload?.requestId },
    });
    expect(store.getState().starting).toBeUndefined();
  });
});

describe("a refusal", () => {
  it("of a setting leaves the prompt alone that was sent beside it", async () => {
    const { controller, store, sent, hear, errors } = await connected();
    controller.continueSession("a", "do it");
    controller.configureSession("a", { model: "nonsense" });
    const [configure] = sent("session.configure");
    hear({
      type: "runner.error",
      commandId: configure?.commandId,
      payload: { sessionId: "a", message: "no such model", code: "invalid_request" },
    });
    const { outbox, refused } = store.getState();
    expect([outbox.sending.size, outbox.returned.size, refused.size]).toEqual([1, 0, 0]);
    expect(errors).toHaveLength(1);
  });

  it("of a prompt is said where it was typed", async () => {
    const { controller, store, sent, hear, errors } = await connected();
    controller.continueSession("a", "do it");
    const [prompt] = sent("session.continue");
    hear({
      type: "runner.error",
      commandId: prompt?.commandId,
      payload: { sessionId: "a", message: "no", code: "a_code_of_a_newer_server" },
    });
    expect(store.getState().refused.get("a")).toBe("no");
    expect(errors).toEqual([]);
  });
});

describe("an answer to a decision", () => {
  it("is given again after a break, and is not asked for twice", async () => {
    const { controller, store, sent, hear, breakConnection, open } = await connected();
    controller.openSession("a");
    const request = {
      sessionId: "a",
      requestId: "r",
      toolUseId: "t",
      toolName: "Bash",
      input: {},
      shown: "0123",
      seq: 1,
    };
    hear({ type: "permission.request", payload: request });
    controller.answerDecision(request, { behavior: "allow" });
    const [first] = sent("permission.response");
    breakConnection();
    open();
    expect(sent("permission.response")).toEqual([first]);
    hear({
      type: "runner.error",
      commandId: first?.commandId,
      payload: { sessionId: "a", message: "…", code: "already_answered" },
    });
    expect(store.getState().logs.get("a")?.decisions.get("r")?.state).toBe("sent");
    hear({
      type: "permission.resolved",
      payload: { sessionId: "a", toolUseId: "t", requestId: "r", behavior: "allow", seq: 2 },
    });
    expect(store.getState().logs.get("a")?.decisions.size).toBe(0);
  });
});

describe("the list of sessions", () => {
  it("comes in pages: some in the background, the rest when they are wanted", async () => {
    const { controller, store, sent, hear } = await connected();
    const page = (commandId: string | undefined, from: number, count: number, nextCursor?: string) =>
      hear({
        type: "session.list",
        commandId,
        payload: {
          sessions: Array.from({ length: count }, (_, index) => ({ ...session, id: `s${from + index}` })),
          nextCursor,
        },
      });
    const [first] = sent("session.list");
    expect(first?.payload).toEqual({ limit: 200 });
    page(first?.commandId, 0, 200, "a");
    // What needs the user and what they have arranged may stand anywhere.
    const [waiting, running, arranged, second] = sent("session.list");
    expect([waiting, running, arranged].map((asked) => asked?.payload)).toEqual([
      { only: "waiting" },
      { only: "running" },
      { only: "arranged" },
    ]);
    page(waiting?.commandId, 9_000, 1);
    expect(store.getState().listing.cursor).toBe("a");
    expect(second?.payload).toEqual({ cursor: "a", limit: 500 });
    page(second?.commandId, 200, 4_000, "b");
    // From here on only if someone wants to see them.
    expect(sent("session.list")).toEqual([]);
    controller.loadMoreSessions();
    controller.loadMoreSessions();
    const [third, ...none] = sent("session.list");
    expect([third?.payload, none]).toEqual([{ cursor: "b", limit: 500 }, []]);
    page(third?.commandId, 4_200, 1);
    expect([store.getState().sessions.size, store.getState().listing.cursor]).toEqual([4_202, undefined]);
    controller.loadMoreSessions();
    expect(sent("session.list")).toEqual([]);
  });

  it("is read whole for a session that is not on the pages that are loaded", async () => {
    const { controller, sent, hear } = await connected();
    const [first] = sent("session.list");
    const many = Array.from({ length: 4_000 }, (_, index) => ({ ...session, id: `s${index}` }));
    hear({ type: "session.list", commandId: first?.commandId, payload: { sessions: many, nextCursor: "a" } });
    for (const { commandId } of sent("session.list"))
      hear({ type: "session.list", commandId, payload: { sessions: [] } });
    controller.lookUp("s5");
    expect(sent("session.list")).toEqual([]);
    controller.lookUp("far down");
    controller.lookUp("far down");
    expect(sent("session.list").map(({ payload }) => payload)).toEqual([{}]);
  });
});

it("every command has an id of its own", async () => {
  await connected();
  const ids = wire.sent.map(({ commandId }) => commandId);
  expect(ids.length).toBeGreaterThan(0);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).not.toContain(undefined);
});
