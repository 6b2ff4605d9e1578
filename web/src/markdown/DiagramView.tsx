import { Code, Workflow } from "lucide-react";
import { memo, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useDark } from "../ui/theme";
import { CopyButton } from "../ui/CopyButton";
import { IconButton } from "../ui/IconButton";
import { drawDiagram } from "./diagram";
import { HighlightedCode } from "./HighlightedCode";

const LANGUAGE = "mermaid";

interface Drawn {
  readonly source: string;
  readonly address: string;
  readonly width: number;
  readonly height: number;
}

type Outcome = Drawn | "failed" | undefined;

/** A diagram. Its source until it has been drawn, whenever it is wanted, and for good if it can't be drawn. */
export const DiagramView = memo(function DiagramView({ source }: { source: string }) {
  const { t } = useTranslation();
  const [asText, setAsText] = useState(false);
  const drawn = useDrawing(source);
  const picture = typeof drawn === "object" && !asText ? drawn : undefined;
  return (
    <figure className="overflow-hidden rounded-lg border border-line bg-sunken">
      <figcaption className="flex h-8 items-center gap-0.5 border-b border-line pr-1 pl-3">
        <span className="flex-1 truncate text-2xs text-ink-3">
          {drawn === "failed" ? t("diagram.failed") : <span className="font-mono">{LANGUAGE}</span>}
        </span>
        {typeof drawn === "object" && (
          <IconButton
            label={asText ? t("diagram.show") : t("diagram.source")}
            onClick={() => setAsText(!asText)}
            className="size-6"
          >
            {asText ? <Workflow className="size-3.5" /> : <Code className="size-3.5" />}
          </IconButton>
        )}
        <CopyButton text={source} className="size-6" />
      </figcaption>
      {picture ? (
        <div className="overflow-x-auto bg-canvas p-3" tabIndex={0}>
          <img
            src={picture.address}
            width={picture.width}
            height={picture.height}
            alt={t("diagram.alt", { source })}
            className="mx-auto h-auto max-w-full"
          />
        </div>
      ) : (
        <HighlightedCode code={source} className="p-3" />
      )}
    </figure>
  );
});

function useDrawing(source: string): Outcome {
  const dark = useDark();
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() => {
    let address: string | undefined;
    let current = true;
    drawDiagram(source, dark).then(
      ({ svg, width, height }) => {
        if (!current) return;
        address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
        setOutcome({ source, address, width, height });
      },
      () => current && setOutcome("failed"),
    );
    return () => {
      current = false;
      if (address) URL.revokeObjectURL(address);
    };
  }, [source, dark]);
  return typeof outcome === "object" && outcome.source !== source ? undefined : outcome;
}
