import { createContext } from "react";
import type { Transcript } from "../session/transcript";

/** Where 'show raw' looks: the transcript on the page, if it is not that of a session of ours. */
export const RawSource = createContext<Transcript | undefined>(undefined);
