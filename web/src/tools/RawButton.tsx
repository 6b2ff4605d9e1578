import { Braces } from "lucide-react";
import { memo, use, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { HighlightedCode } from "../markdown/HighlightedCode";
import type { Entry } from "../session/entries";
import { rawEntries } from "../session/transcript";
import { store } from "../store/state";
import { CopyButton } from "../ui/CopyButton";
import { IconButton } from "../ui/IconButton";
import { Modal } from "../ui/Modal";
import { RawSource } from "./rawSource";

/** The messages behind a row, exactly as they came. */
export const RawButton = memo(function RawButton({
  sessionId,
  seqs,
  className,
}: {
  sessionId: string;
  /** Where the row came from. The same list while its words grow, so that they don't draw this again. */
  seqs: readonly number[];
  className?: string;
}) {
  const { t } = useTranslation();
  const [raw, setRaw] = useState<string | undefined>();
  const source = use(RawSource);

  function show(): void {
    const transcript = source ?? store.getState().logs.get(sessionId)?.transcript;
    if (transcript) setRaw(rawEntries(transcript, seqs).map(entryJson).join("\n\n"));
  }

  return (
    <>
      <IconButton
        label={t("raw.show")}
        onClick={show}
        className={cn(
          // It stands beside the row where there is room, and over its corner where there is none: it never moves the text.
          "absolute top-0.5 right-0 opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 focus-visible:opacity-100 sm:-right-9 pointer-coarse:rounded-lg pointer-coarse:bg-raised pointer-coarse:shadow-card",
          className,
        )}
      >
        <Braces className="size-3.5" />
      </IconButton>
      <Modal open={raw !== undefined} onClose={() => setRaw(undefined)} title={t("raw.title")} wide>
        <div className="relative rounded-lg border border-line bg-sunken">
          <CopyButton text={raw ?? ""} className="absolute top-1.5 right-1.5 bg-sunken" />
          <HighlightedCode code={raw ?? ""} language="json" className="p-3 whitespace-pre-wrap" />
        </div>
      </Modal>
    </>
  );
});

function entryJson(entry: Entry): string {
  if (entry.kind === "message") return JSON.stringify(entry.raw, null, 2);
  const { kind: _kind, ...rest } = entry;
  return JSON.stringify(rest, null, 2);
}
