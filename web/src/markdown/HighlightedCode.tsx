import { memo, useEffect, useState } from "react";
import { cn } from "../lib/cn";
import { highlight, type TokenLine } from "./highlight";

interface HighlightedCodeProps {
  code: string;
  language?: string;
  className?: string;
}

/** Code in colours. Plain until the worker has answered, and whenever it does not know the language. */
export const HighlightedCode = memo(function HighlightedCode({
  code,
  language,
  className,
}: HighlightedCodeProps) {
  const [coloured, setColoured] = useState<{ code: string; lines: TokenLine[] } | undefined>();

  useEffect(() => {
    if (!language) return;
    let current = true;
    void highlight(code, language).then((lines) => {
      if (current && lines) setColoured({ code, lines });
    });
    return () => {
      current = false;
    };
  }, [code, language]);

  return (
    <pre tabIndex={0} className={cn("overflow-x-auto font-mono text-xs leading-5", className)}>
      <code>{coloured?.code === code ? <Tokens lines={coloured.lines} /> : code}</code>
    </pre>
  );
});

function Tokens({ lines }: { lines: TokenLine[] }) {
  return lines.map((line, row) => (
    // Lines and tokens have no identity but their place.
    // oxlint-disable-next-line react/no-array-index-key
    <span key={row}>
      {line.map((token, column) => (
        // oxlint-disable-next-line react/no-array-index-key
        <span key={column} style={{ color: token.color }}>
          {token.text}
        </span>
      ))}
      {row < lines.length - 1 && "\n"}
    </span>
  ));
}
