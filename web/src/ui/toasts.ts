import { Toast } from "@base-ui/react/toast";

/** Outside React, because what goes wrong is mostly noticed there. */
export const toasts = Toast.createToastManager();

/** For what a click has begun and nobody waits for. */
export function tellFailure(error: unknown): void {
  toasts.add({ title: error instanceof Error ? error.message : String(error), type: "error" });
}
