import type { TFunction } from "i18next";
import type { PermissionMode } from "../gen/events";

export const permissionModes = [
  "default",
  "acceptEdits",
  "plan",
  "bypassPermissions",
] as const satisfies PermissionMode[];

/** The mode in words. One that only a newer agent knows keeps its own name. */
export function modeName(t: TFunction, mode: string): string {
  const known = permissionModes.find((each) => each === mode);
  return known ? t(`mode.${known}.name`) : mode;
}
