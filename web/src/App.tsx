import { CSPProvider } from "@base-ui/react/csp-provider";
import { Tooltip } from "@base-ui/react/tooltip";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Opening } from "./ui/Opening";
import { SplitView } from "./features/conversation/SplitView";
import { AppFrame } from "./frame/AppFrame";
import { DemoBanner } from "./frame/DemoBanner";
import { SignedOut } from "./frame/SignedOut";
import { useFocusRule } from "./frame/useFocusRule";
import { useGlobalKeys } from "./frame/useGlobalKeys";
import { pages } from "./frame/pages";
import { useBeginning } from "./features/start/afresh";
import { StartView } from "./features/start/StartView";
import { useApp, useSessionList } from "./store/hooks";
import { usePending } from "./store/queue";
import { sessionOf, usePanes } from "./store/panes";
import { go, useRoute } from "./store/route";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { onDemand } from "./lib/onDemand";
import { useDialogs } from "./store/dialogs";
import { usePalette } from "./store/palette";

const Nothing = () => null;

/** What nobody sees at first. */
const Palette = onDemand(
  async () => ({ default: (await import("./features/palette/Palette")).Palette }),
  Nothing,
);
const SessionDialogs = onDemand(
  async () => ({ default: (await import("./features/settings/SessionDialogs")).SessionDialogs }),
  Nothing,
);
const Toaster = onDemand(async () => ({ default: (await import("./ui/Toaster")).Toaster }), Nothing);

/** Fetches it before it is wanted. */
export function preloadParts(): void {
  for (const part of [Palette, SessionDialogs]) part.preload();
}

/** True from the first time on: what is closed again leaves by itself. */
function useOnce(now: boolean): boolean {
  const [once, setOnce] = useState(now);
  if (now && !once) setOnce(true);
  return once || now;
}

export function App() {
  const signedOut = useApp((state) => state.access === "signedOut");
  return (
    // The page's policy allows no injected style elements; what they would say is in our own style sheet.
    <CSPProvider disableStyleElements>
      <Tooltip.Provider delay={500}>
        <ErrorBoundary>
          {signedOut ? <SignedOut /> : <Workbench />}
          <Toaster />
        </ErrorBoundary>
      </Tooltip.Provider>
    </CSPProvider>
  );
}

function Workbench() {
  const route = useRoute();
  const beginning = useBeginning();
  const listed = useApp((state) => state.listing.listed);
  const newest = useSessionList()[0]?.id;
  const latest =
    usePanes(({ panes, active }) => (panes.length > 1 ? sessionOf(panes[active]) : undefined)) ?? newest;
  usePageTitle(route.view === "session" ? route.id : undefined);

  // Without a place of its own the page opens the session that was used last, or the way to the first one.
  useEffect(() => {
    if (route.view !== "latest" || !listed) return;
    go(latest ? { view: "session", id: latest } : { view: "start" }, "replace");
  }, [route.view, listed, latest]);

  useGlobalKeys();
  useFocusRule();
  const palette = useOnce(usePalette((state) => state.open));
  const dialogs = useOnce(useDialogs((state) => state.open !== undefined));
  const Page = route.view === "page" ? pages[route.page] : undefined;

  return (
    <AppFrame>
      <DemoBanner />
      {route.view === "session" && <SplitView id={route.id} />}
      {route.view === "start" && <StartView key={beginning} />}
      {route.view === "latest" && <Opening />}
      {Page && <Page />}
      {palette && <Palette />}
      {dialogs && <SessionDialogs />}
    </AppFrame>
  );
}

/** The title counts what waits, for those who look at another tab. */
function usePageTitle(sessionId: string | undefined): void {
  const { t } = useTranslation();
  const title = useApp((state) => (sessionId ? state.sessions.get(sessionId)?.title : undefined));
  const waiting = usePending();
  useEffect(() => {
    const name = title ? t("app.title", { title }) : t("app.name");
    document.title = waiting > 0 ? t("app.waiting", { count: waiting, name }) : name;
  }, [t, title, waiting]);
}
