import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { copyText } from "../lib/clipboard";
import { IconButton } from "./IconButton";
import { toasts } from "./toasts";

const CONFIRM_MS = 1_500;

/** Copies, and says so for a moment. */
export function CopyButton({ text, label, className }: { text: string; label?: string; className?: string }) {
  const { t } = useTranslation();
  const [copied, setCopied] = useState(false);

  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [copied]);

  return (
    <IconButton
      label={copied ? t("common.copied") : (label ?? t("common.copy"))}
      className={className}
      onClick={() =>
        copyText(text).then(
          () => setCopied(true),
          () => toasts.add({ title: t("common.copyFailed"), type: "error" }),
        )
      }
    >
      {copied ? <Check className="size-3.5 text-good" /> : <Copy className="size-3.5" />}
    </IconButton>
  );
}
