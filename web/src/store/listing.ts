/**
 * How much of the list of sessions is loaded. It comes in pages, newest first: more of them in the background up to a bound,
 * and beyond it when the user scrolls down or looks for something. Pure.
 */
import type { SessionInfo } from "../gen/events";
import { listSessions, mergeSessions, type Sessions } from "../session/sessions";

/** `first`: the list anew. `more`: the next page. `some`: sessions that have just changed, or are wanted wherever they stand. */
export type ListPurpose = "first" | "more" | "some";

export interface Listing {
  /** A first page has been read. */
  readonly listed: boolean;
  /** Where the next page begins; absent once all sessions are loaded. */
  readonly cursor: string | undefined;
  /** What was asked for and not answered yet, by the id of the command that asked. */
  readonly asked: ReadonlyMap<string, ListPurpose>;
}

export const noListing: Listing = { listed: false, cursor: undefined, asked: new Map() };

export function askList(listing: Listing, commandId: string, purpose: ListPurpose): Listing {
  return { ...listing, asked: new Map(listing.asked).set(commandId, purpose) };
}

export const isAskingFor = ({ asked }: Listing, purpose: ListPurpose): boolean =>
  [...asked.values()].includes(purpose);

/** Whether a session that is not among the loaded ones does not exist. */
export const isComplete = ({ listed, cursor, asked }: Listing): boolean =>
  listed && cursor === undefined && asked.size === 0;

/** Whether there may be sessions that are not loaded and that nobody has asked for. */
export const isPartial = ({ cursor, asked }: Listing): boolean => cursor !== undefined && asked.size === 0;

/** A list that nobody asked for is the list anew: the server sends it to one who has missed something. */
export function acceptList(
  listing: Listing,
  sessions: Sessions,
  answer: { readonly sessions: readonly SessionInfo[]; readonly nextCursor?: string },
  commandId: string | undefined,
): { listing: Listing; sessions: Sessions } {
  const purpose = purposeOf(listing, commandId);
  const asked = withoutCommand(listing.asked, commandId);
  const { nextCursor: cursor } = answer;
  switch (purpose) {
    case "first":
      return { listing: { listed: true, cursor, asked }, sessions: listSessions(answer.sessions) };
    case "more":
      return { listing: { ...listing, cursor, asked }, sessions: mergeSessions(sessions, answer.sessions) };
    case "some":
      return { listing: { ...listing, asked }, sessions: mergeSessions(sessions, answer.sessions) };
  }
}

/** What an answer was asked for. */
export const purposeOf = ({ asked }: Listing, commandId: string | undefined): ListPurpose =>
  (commandId !== undefined && asked.get(commandId)) || "first";

/** The command was refused; it may be asked again. */
export function refuseList(listing: Listing, commandId: string): Listing {
  return listing.asked.has(commandId)
    ? { ...listing, asked: withoutCommand(listing.asked, commandId) }
    : listing;
}

/** The connection is a new one: what was asked of the last one is not answered any more. */
export const forgetAsked = (listing: Listing): Listing => ({ ...listing, asked: new Map() });

function withoutCommand(
  asked: Listing["asked"],
  commandId: string | undefined,
): ReadonlyMap<string, ListPurpose> {
  return new Map([...asked].filter(([id]) => id !== commandId));
}
