import { onDemand } from "../lib/onDemand";
import type { MarkdownProps } from "./StreamedMarkdown";

/** Until the renderer is there, the text itself is shown, unformatted. */
export const Markdown = onDemand<MarkdownProps>(
  () => import("./StreamedMarkdown"),
  ({ text }) => <div className="prose-answer whitespace-pre-wrap">{text}</div>,
);
