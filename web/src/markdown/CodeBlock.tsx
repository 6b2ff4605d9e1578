import { memo } from "react";
import { CopyButton } from "../ui/CopyButton";
import { HighlightedCode } from "./HighlightedCode";

/** A block of code in an answer: its language, a way to copy it, and colours once they are ready. */
export const CodeBlock = memo(function CodeBlock({ code, language }: { code: string; language?: string }) {
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-sunken">
      <div className="flex h-8 items-center justify-between border-b border-line pr-1 pl-3">
        <span className="font-mono text-2xs text-ink-3">{language}</span>
        <CopyButton text={code} className="size-6" />
      </div>
      <HighlightedCode code={code} language={language} className="p-3" />
    </div>
  );
});
