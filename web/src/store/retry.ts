/** Sends a prompt again whose turn came to nothing, with everything that went along. */
import type { NewAttachment } from "../gen/events";
import type { PromptItem } from "../session/items";
import { fileBytes } from "../wire/files";
import { continueSession } from "./controller";
import { store } from "./state";

/** The last thing that the user said in a session, as far as it is loaded. */
export function lastPromptOf(sessionId: string): PromptItem | undefined {
  const items = store.getState().logs.get(sessionId)?.transcript.items ?? [];
  return items.findLast((item) => item.kind === "prompt" && item.parent === undefined) as
    | PromptItem
    | undefined;
}

/** Throws if an attachment can't be read any more. */
export async function retryLastPrompt(sessionId: string): Promise<void> {
  const prompt = lastPromptOf(sessionId);
  if (!prompt) {
    // The prompt is on a page that is not loaded; the list knows its words.
    const text = store.getState().sessions.get(sessionId)?.lastPrompt;
    if (text) continueSession(sessionId, text);
    return;
  }
  const attachments = await Promise.all(
    (prompt.attachments ?? []).map(async ({ id, mediaType, name }): Promise<NewAttachment> => {
      const data = await fileBytes(`/api/sessions/${sessionId}/images/${id}`);
      return { mediaType, data, ...(name !== undefined && { name }) };
    }),
  );
  continueSession(sessionId, prompt.text, { attachments, context: prompt.context });
}
