/** Loads the renderer when the first answer appears; until then the text itself is shown, unformatted. */
import { lazy, memo, Suspense } from "react";

const StreamedMarkdown = lazy(() => import("./StreamedMarkdown"));

export const Markdown = memo(function Markdown({ text, live = false }: { text: string; live?: boolean }) {
  return (
    <Suspense fallback={<div className="prose-answer whitespace-pre-wrap">{text}</div>}>
      <StreamedMarkdown text={text} live={live} />
    </Suspense>
  );
});
