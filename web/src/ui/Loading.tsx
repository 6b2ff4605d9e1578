import { LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";

/** Something is on its way. */
export function Loading({ className }: { className?: string }) {
  const { t } = useTranslation();
  return (
    <p role="status" className={cn("flex items-center gap-2 text-xs text-ink-3", className)}>
      <LoaderCircle className="size-3.5 shrink-0 motion-safe:animate-spin" aria-hidden />
      {t("common.loading")}
    </p>
  );
}
