import { onDemand } from "../../lib/onDemand";
import type { SidePanelProps } from "./SidePanel";
import { panelClass } from "../../store/panel";

/** The panel beside a conversation; its place is kept until it is there. */
export const Panel = onDemand<SidePanelProps>(
  () => import("./SidePanel"),
  () => <aside aria-hidden className={panelClass} />,
);
