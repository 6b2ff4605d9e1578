/** Going back in a conversation: what the actions of a message do. */
import i18next from "i18next";
import type { NewAttachment } from "../../gen/events";
import { newId } from "../../lib/id";
import { writeStored } from "../../lib/storage";
import type { PromptItem, TextItem } from "../../session/items";
import { continueSession, goToNew, UNDO_MS } from "../../store/controller";
import { readImage } from "../../store/images";
import { forkAt, rewind, type Rewound, undoRewind } from "../../store/inquiries";
import { store } from "../../store/state";
import { focusComposer } from "../../ui/focus";
import { toasts } from "../../ui/toasts";
import { fileContent } from "../../wire/files";
import { refill } from "./quotes";

export type Message = PromptItem | TextItem;

/** The prompt that a message is, or answers. */
export function promptOf(sessionId: string, item: Message): PromptItem | undefined {
  if (item.kind === "prompt") return item;
  const items = store.getState().logs.get(sessionId)?.transcript.items ?? [];
  const seq = item.seqs[0] ?? 0;
  return items.findLast(
    (each): each is PromptItem => each.kind === "prompt" && !each.parent && (each.seqs[0] ?? 0) < seq,
  );
}

/** The images that went along with a prompt, to be sent once more. */
async function attachmentsOf(sessionId: string, { attachments }: PromptItem): Promise<NewAttachment[]> {
  return Promise.all(
    (attachments ?? []).map(async ({ id, name }) =>
      readImage(await fileContent(`/api/sessions/${sessionId}/images/${id}`, name ?? "")),
    ),
  );
}

/** Sends a prompt again, with these words, in place of everything from it on. Files stay as they are. */
export async function resend(sessionId: string, prompt: PromptItem, text: string): Promise<void> {
  const attachments = await attachmentsOf(sessionId, prompt);
  await rewind(sessionId, prompt.uuid ?? newId(), { dryRun: false, files: false });
  if (!continueSession(sessionId, text, { attachments, context: prompt.context }))
    refill(sessionId, { text, attachments });
  // The row whose menu this was chosen from is gone.
  focusComposer();
}

/** A new session that begins with everything up to an answer, or before a prompt, which is then there to be written anew. */
export async function forkFrom(sessionId: string, item: Message): Promise<void> {
  const seq = item.seqs.at(-1) ?? 0;
  const id = await forkAt(sessionId, item.kind === "prompt" ? seq - 1 : seq);
  if (item.kind === "prompt") writeStored(`draft.${id}`, item.text);
  goToNew(id);
}

/** Takes the session back to before a prompt, which comes back into the message field. */
export async function goBack(sessionId: string, prompt: PromptItem, files: boolean): Promise<void> {
  const attachments = await attachmentsOf(sessionId, prompt);
  const done = await rewind(sessionId, prompt.uuid ?? newId(), { dryRun: false, files });
  refill(sessionId, { text: prompt.text, attachments });
  const toast = toasts.add({
    title: i18next.t("rewind.done", { count: done.prompts ?? 1 }),
    timeout: UNDO_MS,
    actionProps: {
      children: i18next.t("common.undo"),
      onClick() {
        toasts.close(toast);
        void undo(sessionId);
      },
    },
  });
}

export async function undo(sessionId: string): Promise<void> {
  try {
    const left = await undoRewind(sessionId);
    if (left.length > 0) toasts.add({ title: i18next.t("rewind.left", { count: left.length }) });
  } catch (error) {
    report("rewind.impossible", error);
  }
}

export function report(title: "rewind.impossible" | "edit.failed", error: unknown): void {
  const description = error instanceof Error ? error.message : undefined;
  toasts.add({ title: i18next.t(title), description, type: "error" });
}

export const preview = (sessionId: string, prompt: PromptItem): Promise<Rewound> =>
  rewind(sessionId, prompt.uuid ?? newId(), { dryRun: true, files: true });

/** What going back would do where files can't be asked about: the agent does not run, or can't tell. */
export const previewWithoutFiles = (sessionId: string, prompt: PromptItem): Promise<Rewound> =>
  rewind(sessionId, prompt.uuid ?? newId(), { dryRun: true, files: false });
