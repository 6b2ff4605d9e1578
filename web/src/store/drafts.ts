/** What was typed and not sent, kept for each session and across reloads. */
import { type Dispatch, type SetStateAction, useEffect, useState } from "react";
import { readStored, writeStored } from "../lib/storage";

export function useDraft(owner: string): [string, Dispatch<SetStateAction<string>>] {
  const [text, setText] = useState(() => readStored(`draft.${owner}`) ?? "");
  useEffect(() => writeStored(`draft.${owner}`, text), [owner, text]);
  return [text, setText];
}

/** It was sent. */
export function forgetDraft(owner: string): void {
  writeStored(`draft.${owner}`, undefined);
}
