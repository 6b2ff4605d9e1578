import { Loading } from "../ui/Loading";
import { onDemand } from "../lib/onDemand";
import type { DiffViewProps } from "./DiffView";

/** The changes of an edit, once the part that computes them is there. */
export const Diff = onDemand<DiffViewProps>(
  () => import("./DiffView"),
  () => <Loading className="px-3 py-2" />,
);
