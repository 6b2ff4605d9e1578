import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connectEvents, parseEvent, pauseBefore } from "./socket";

describe("pauseBefore", () => {
  it("doubles up to a limit, and is spread", () => {
    const longest = [0, 1, 2, 10].map((attempt) => pauseBefore(attempt, () => 1));
    expect(longest).toEqual([250, 500, 1_000, 8_000]);
    expect(pauseBefore(10, () => 0)).toBe(4_000);
  });
});

describe("parseEvent", () => {
  it("passes over what is no event", () => {
    expect(parseEvent("{")).toBeUndefined();
    expect(parseEvent("7")).toBeUndefined();
    expect(parseEvent(new ArrayBuffer(1))).toBeUndefined();
    expect(parseEvent('{"type":"session.list","payload":{"sessions":[]}}')).toMatchObject({
      type: "session.list",
    });
  });
});

describe("connectEvents", () => {
  class FakeSocket extends EventTarget {
    static readonly CONNECTING = 0;
    static readonly OPEN = 1;
    static readonly CLOSED = 3;
    static all: FakeSocket[] = [];
    readyState = 0;
    sent: string[] = [];
    constructor(readonly url: string) {
      super();
      FakeSocket.all.push(this);
    }
    send(data: string) {
      this.sent.push(data);
    }
    close() {
      this.break();
    }
    open() {
      this.readyState = 1;
      this.dispatchEvent(new Event("open"));
    }
    break() {
      this.readyState = 3;
      this.dispatchEvent(new Event("close"));
    }
  }

  beforeEach(() => {
    vi.useFakeTimers();
    FakeSocket.all = [];
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("window", new EventTarget());
    vi.stubGlobal("document", new EventTarget());
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function connect() {
    const seen: string[] = [];
    const socket = connectEvents("ws://x", {
      onOpen: () => seen.push("resync"),
      onEvent: (event) => seen.push(event.type),
      onConnection: (connection) => seen.push(connection),
    });
    return { seen, socket };
  }

  it("reconnects, and asks for a resynchronisation each time", async () => {
    const { seen } = connect();
    FakeSocket.all[0]?.open();
    FakeSocket.all[0]?.break();
    await vi.advanceTimersByTimeAsync(300);
    FakeSocket.all[1]?.open();
    expect(seen).toEqual(["connecting", "open", "resync", "offline", "open", "resync"]);
  });

  it("says that it did not send while it was not open", () => {
    const { socket } = connect();
    expect(socket.send({ type: "session.list" }, "c1")).toBe(false);
    FakeSocket.all[0]?.open();
    expect(socket.send({ type: "session.list" }, "c1")).toBe(true);
    expect(FakeSocket.all[0]?.sent).toEqual(['{"type":"session.list","commandId":"c1"}']);
  });

  it("tries at once when the network comes back, and only once", () => {
    connect();
    FakeSocket.all[0]?.break();
    window.dispatchEvent(new Event("online"));
    window.dispatchEvent(new Event("online"));
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("does not open a second connection while the first is still closing", () => {
    connect();
    const [first] = FakeSocket.all;
    first?.open();
    if (first) first.readyState = 2;
    window.dispatchEvent(new Event("online"));
    expect(FakeSocket.all).toHaveLength(1);
    first?.break();
    window.dispatchEvent(new Event("online"));
    expect(FakeSocket.all).toHaveLength(2);
  });

  it("stays closed when it was closed", async () => {
    const { seen, socket } = connect();
    FakeSocket.all[0]?.open();
    socket.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(FakeSocket.all).toHaveLength(1);
    expect(seen).not.toContain("offline");
  });
});
