/** The models that can be chosen, and how hard each can be asked to try: as the agent lists them. */
import { useLoaded } from "../lib/useLoaded";
import { inquire } from "./inquiries";
import { asArray, asObject, asObjects, asString } from "../wire/json";

export interface Model {
  readonly value: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly efforts: readonly string[];
}

/** Names that every version of Claude Code takes, for as long as no agent has said more. */
const usual: readonly Model[] = [
  { value: "opus", name: "Opus", description: undefined, efforts: [] },
  { value: "sonnet", name: "Sonnet", description: undefined, efforts: [] },
  { value: "haiku", name: "Haiku", description: undefined, efforts: [] },
];

export function parseModels(data: unknown): Model[] {
  return asObjects(asObject(data)?.models ?? data).flatMap((model) => {
    const value = asString(model.value);
    // The default is what no choice means.
    if (!value || value === "default") return [];
    return [
      {
        value,
        name: asString(model.displayName) ?? value,
        description: asString(model.description),
        efforts: asArray(model.supportedEffortLevels).flatMap((level) => asString(level) ?? []),
      },
    ];
  });
}

/** Any session can be asked: the server remembers what the last agent said. */
export function useModels(sessionId: string | undefined, revision = ""): readonly Model[] {
  const [loaded] = useLoaded(`models:${sessionId ?? ""}:${revision}`, async () =>
    sessionId === undefined ? [] : parseModels(await inquire(sessionId, "models")),
  );
  return loaded.state === "ready" && loaded.value.length > 0 ? loaded.value : usual;
}

/** What the chosen model offers; without a choice, what any of them does. */
export function effortsOf(models: readonly Model[], chosen: string | undefined): readonly string[] {
  const model = models.find((each) => each.value === chosen);
  return model ? model.efforts : [...new Set(models.flatMap((each) => each.efforts))];
}
