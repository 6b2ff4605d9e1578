import { useEffect, useState } from "react";
import { inquire } from "../../store/inquiries";
import { store } from "../../store/state";
import { commandSuggestions, fileSuggestions, type Suggestion } from "../../session/suggestions";
import type { Token } from "./completion";

const MOST_SHOWN = 40;
const TYPING_PAUSE_MS = 80;

/** The commands or files that fit what is being typed. */
export function useSuggestions(sessionId: string, token: Token | undefined): readonly Suggestion[] {
  const [found, setFound] = useState<{ key: string; suggestions: readonly Suggestion[] }>();
  const kind = token?.kind;
  const query = token?.query ?? "";
  const key = kind ? `${kind}:${query}` : "";
  useEffect(() => {
    if (kind === undefined) return;
    let current = true;
    const timer = setTimeout(() => {
      const asked = kind === "command" ? commandsFor(sessionId, query) : filesFor(sessionId, query);
      asked
        .then((suggestions) => current && setFound({ key: `${kind}:${query}`, suggestions }))
        .catch(() => {
          if (current) setFound(undefined);
        });
    }, TYPING_PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [sessionId, kind, query]);
  // While the next ones are on their way the last ones stay, so that the list does not flicker.
  return key && found?.key.startsWith(`${kind}:`) ? found.suggestions : [];
}

async function commandsFor(sessionId: string, query: string): Promise<readonly Suggestion[]> {
  const init = store.getState().logs.get(sessionId)?.transcript.init;
  const told = await inquire(sessionId, "commands").catch(() => undefined);
  const all = commandSuggestions(told, init);
  const wanted = query.toLowerCase();
  return all
    .filter((each) => each.value.toLowerCase().includes(wanted))
    .toSorted((a, b) => Number(!a.value.startsWith(wanted)) - Number(!b.value.startsWith(wanted)))
    .slice(0, MOST_SHOWN);
}

/** The agent looks for files when it is first asked, and knows them a moment later. */
const LOOKING_PAUSES_MS = [0, 300, 900, 1_800];

async function filesFor(sessionId: string, query: string): Promise<readonly Suggestion[]> {
  for (const pause of LOOKING_PAUSES_MS) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other is the point
    await new Promise((resolve) => setTimeout(resolve, pause));
    // oxlint-disable-next-line no-await-in-loop
    const found = fileSuggestions(await inquire(sessionId, "fileSuggestions", query));
    if (found.length > 0) return found.slice(0, MOST_SHOWN);
  }
  return [];
}
