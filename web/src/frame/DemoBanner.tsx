import { FlaskConical } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useApp } from "../store/hooks";
import { CopyButton } from "../ui/CopyButton";

const INSTALL = "npm install -g @anthropic-ai/claude-code";

/** Says that nothing here is real, and how to make it so. */
export function DemoBanner() {
  const { t } = useTranslation();
  const backend = useApp((state) => state.system?.backend);
  if (backend?.name !== "demo") return null;
  return (
    <aside
      aria-label={t("demo.title")}
      className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-wait-soft px-4 py-2 text-sm"
    >
      <FlaskConical className="size-4 shrink-0 text-wait" aria-hidden />
      <p className="min-w-0 flex-1 basis-72">
        <strong className="font-semibold">{t("demo.title")}</strong>{" "}
        <span className="text-ink-2">{t("demo.text")}</span>
      </p>
      <span className="flex items-center gap-1 rounded-md border border-line bg-raised pl-2">
        <code className="font-mono text-xs">{INSTALL}</code>
        <CopyButton text={INSTALL} label={t("demo.copy")} />
      </span>
    </aside>
  );
}
