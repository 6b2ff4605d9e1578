/**
 * Reading JSON whose shape belongs to someone else. The agent's messages gain and lose fields with every release, so
 * nothing here throws: what is not there, or not of the expected kind, is absent.
 */

export type Json = Record<string, unknown>;

export function asObject(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asObjects(value: unknown): Json[] {
  return asArray(value).flatMap((each): Json[] => {
    const object = asObject(each);
    return object ? [object] : [];
  });
}

export function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
