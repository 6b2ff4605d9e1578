import { useTranslation } from "react-i18next";

/** The page knows where it is going and waits for it. */
export function Opening() {
  const { t } = useTranslation();
  return (
    <div
      role="status"
      aria-label={t("common.loading")}
      className="mx-auto flex w-full max-w-[52rem] flex-1 flex-col gap-4 px-4 pt-8 sm:px-10"
    >
      {["w-2/3", "w-full", "w-5/6", "w-1/2"].map((width) => (
        <span key={width} className={`h-4 animate-breathe rounded bg-active ${width}`} />
      ))}
    </div>
  );
}
