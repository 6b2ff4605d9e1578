/** The models that can be chosen, asked of an agent. */
import { useLoaded } from "../lib/useLoaded";
import { type Model, parseModels } from "../session/models";
import { inquire } from "./inquiries";

/** Names that every version of Claude Code takes, for as long as no agent has said more. */
const usual: readonly Model[] = [
  { value: "opus", name: "Opus", description: undefined, efforts: [] },
  { value: "sonnet", name: "Sonnet", description: undefined, efforts: [] },
  { value: "haiku", name: "Haiku", description: undefined, efforts: [] },
];

export interface Models {
  readonly models: readonly Model[];
  /** The agent has not answered yet. */
  readonly loading: boolean;
}

/** Any session can be asked: the server remembers what the last agent said. */
export function useModels(sessionId: string | undefined, revision = ""): Models {
  const [loaded] = useLoaded(`models:${sessionId ?? ""}:${revision}`, async () =>
    sessionId === undefined ? [] : parseModels(await inquire(sessionId, "models")),
  );
  return {
    models: loaded.state === "ready" && loaded.value.length > 0 ? loaded.value : usual,
    loading: loaded.state === "loading",
  };
}
