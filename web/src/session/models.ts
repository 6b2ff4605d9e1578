/** The models that can be chosen, and how hard each can be asked to try: as the agent lists them. Pure. */
import { asArray, asObject, asObjects, asString } from "../wire/json";

export interface Model {
  readonly value: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly efforts: readonly string[];
}

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

/** What the chosen model offers; without a choice, what any of them does. */
export function effortsOf(models: readonly Model[], chosen: string | undefined): readonly string[] {
  const model = models.find((each) => each.value === chosen);
  return model ? model.efforts : [...new Set(models.flatMap((each) => each.efforts))];
}
