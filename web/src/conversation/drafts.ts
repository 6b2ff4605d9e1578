/** What was typed and not sent, kept for each session and across reloads. */
import { useEffect, useState } from "react";
import { readStored, writeStored } from "../lib/storage";

export function useDraft(owner: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => readStored(`draft.${owner}`) ?? "");
  useEffect(() => writeStored(`draft.${owner}`, text), [owner, text]);
  return [text, setText];
}
