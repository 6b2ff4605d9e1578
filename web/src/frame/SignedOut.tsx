import { useTranslation } from "react-i18next";
import { useApp } from "../store/hooks";
import { CopyButton } from "../ui/CopyButton";
import { Logo } from "./Logo";
import { Preferences } from "./Preferences";

const COMMAND = "tiller link";

/** The page for someone without a cookie: how to get in. */
export function SignedOut() {
  const { t } = useTranslation();
  const deadLink = useApp((state) => state.deadLink);
  return (
    <main className="flex h-full flex-col items-center justify-center px-6">
      <div className="w-full max-w-sm">
        <Logo className="size-10" />
        <h1 className="mt-5 text-xl font-semibold tracking-tight">
          {deadLink ? t("signedOut.deadTitle") : t("signedOut.title")}
        </h1>
        <p className="mt-2 text-ink-2">{deadLink ? t("signedOut.deadText") : t("signedOut.text")}</p>
        <div className="mt-4 flex items-center gap-2 rounded-lg border border-line bg-sunken py-1.5 pr-1.5 pl-3.5">
          <code className="flex-1 font-mono text-sm">{COMMAND}</code>
          <CopyButton text={COMMAND} />
        </div>
        <p className="mt-4 text-sm text-ink-3">{t("signedOut.hint")}</p>
        <div className="mt-6 flex items-center justify-between">
          <button
            type="button"
            onClick={() => location.reload()}
            className="text-sm font-medium text-accent hover:underline"
          >
            {t("signedOut.again")}
          </button>
          <Preferences />
        </div>
      </div>
    </main>
  );
}
