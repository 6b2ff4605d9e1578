import { describe, expect, it } from "vitest";
import type { SessionInfo } from "../gen/events";
import type { Sessions } from "../session/sessions";
import {
  acceptList,
  askList,
  forgetAsked,
  isAskingFor,
  isComplete,
  type ListPurpose,
  noListing,
  refuseList,
} from "./listing";

const info = (id: string, lastSeq = 1): SessionInfo => ({ id, lastSeq }) as SessionInfo;
const ask = (purpose: ListPurpose, listing = noListing) => askList(listing, "c", purpose);
const known: Sessions = new Map([["a", info("a", 5)]]);
const ids = (sessions: Sessions) => [...sessions.keys()];

describe("the list of sessions", () => {
  it("begins anew with its first page, and goes on after it", () => {
    const first = acceptList(ask("first"), known, { sessions: [info("b")], nextCursor: "n" }, "c");
    expect(ids(first.sessions)).toEqual(["b"]);
    expect(first.listing).toEqual({ listed: true, cursor: "n", asked: new Map() });
    expect(isComplete(first.listing)).toBe(false);
    const asked = ask("more", first.listing);
    expect(isAskingFor(asked, "more")).toBe(true);
    const more = acceptList(asked, first.sessions, { sessions: [info("c")] }, "c");
    expect(ids(more.sessions)).toEqual(["b", "c"]);
    expect([more.listing.cursor, isComplete(more.listing)]).toEqual([undefined, true]);
  });

  it("begins anew with what the server sends unasked", () => {
    for (const commandId of [undefined, "unknown"]) {
      const { sessions } = acceptList(noListing, known, { sessions: [info("b")] }, commandId);
      expect(ids(sessions)).toEqual(["b"]);
    }
  });

  it("does not go back to what a page knew before the events that came since", () => {
    const { sessions } = acceptList(ask("more"), known, { sessions: [info("a", 4)] }, "c");
    expect(sessions.get("a")?.lastSeq).toBe(5);
  });

  it("keeps its place when the newest sessions are read", () => {
    const listing = { ...noListing, listed: true, cursor: "n" };
    const found = acceptList(ask("some", listing), known, { sessions: [info("b")], nextCursor: "x" }, "c");
    expect(ids(found.sessions)).toEqual(["a", "b"]);
    expect(found.listing).toEqual(listing);
  });

  it("can be asked again after a refusal, and on a new connection", () => {
    for (const listing of [refuseList(ask("more"), "c"), forgetAsked(ask("more"))])
      expect(isAskingFor(listing, "more")).toBe(false);
  });
});
