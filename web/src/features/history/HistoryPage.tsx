import { useMemo } from "react";
import { useRoute } from "../../store/route";
import { parseView } from "./address";
import { ListView } from "./ListView";
import { ReadView } from "./ReadView";
import { UsageView } from "./UsageView";

/** Every conversation with Claude Code on this machine: found, read, continued, exported, counted. */
export function HistoryPage() {
  const route = useRoute();
  const rest = route.view === "page" ? route.rest : "";
  const view = useMemo(() => parseView(rest), [rest]);
  switch (view.view) {
    case "session":
      return <ReadView key={`${view.id} ${view.at ?? ""}`} id={view.id} at={view.at} goOn={view.goOn} />;
    case "usage":
      return <UsageView days={view.days} by={view.by} />;
    case "list":
      return <ListView filters={view.filters} />;
  }
}
