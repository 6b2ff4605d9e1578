import { Toast } from "@base-ui/react/toast";
import { newId } from "../lib/id";

/** What shows them. Only the part of the page that draws them needs it. */
export const manager = Toast.createToastManager();

type Options = Parameters<typeof manager.add>[0];

/** What was said before the part that shows it was there. */
let early: Options[] | undefined = [];

/** Outside React, because what goes wrong is mostly noticed there. */
export const toasts = {
  add(options: Options): string {
    if (!early) return manager.add(options);
    const id = options.id ?? newId();
    early.push({ ...options, id });
    return id;
  },
  close(id: string): void {
    if (early) early = early.filter((each) => each.id !== id);
    else manager.close(id);
  },
};

/** Somebody shows them from now on. */
export function listening(): void {
  const said = early ?? [];
  early = undefined;
  for (const options of said) manager.add(options);
}

/** For what a click has begun and nobody waits for. */
export function tellFailure(error: unknown): void {
  toasts.add({ title: error instanceof Error ? error.message : String(error), type: "error" });
}
