import type { TFunction } from "i18next";
import type { PermissionMode } from "../gen/events";

export const permissionModes = [
  "default",
  "acceptEdits",
  "plan",
  "auto",
  "bypassPermissions",
] as const satisfies PermissionMode[];

/** The modes in which an agent can go on once its plan is approved: asking, accepting edits, and the one it is in, if that is another. */
export function followingModes(current: PermissionMode | undefined): PermissionMode[] {
  const usual: PermissionMode[] = ["default", "acceptEdits"];
  if (current === undefined || current === "plan") return usual;
  return [current, ...usual.filter((mode) => mode !== current)];
}

/** The mode in words. One that only a newer agent knows keeps its own name. */
export function modeName(t: TFunction, mode: string): string {
  const known = permissionModes.find((each) => each === mode);
  return known ? t(`mode.${known}.name`) : mode;
}

/** What the mode does, for those that we know. */
export function modeHint(t: TFunction, mode: string): string | undefined {
  const known = permissionModes.find((each) => each === mode);
  return known && t(`mode.${known}.hint`);
}
