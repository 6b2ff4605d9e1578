/** The key that leads through what needs the user, from anywhere. */
import i18next from "i18next";
import { nextInQueue, useQueue } from "../store/queue";
import { currentRoute, go } from "../store/route";
import { activePane, WAITING } from "../ui/focus";
import { toasts } from "../ui/toasts";

export function goToWaiting(step: 1 | -1): void {
  const { queue } = useQueue.getState();
  const route = currentRoute();
  const here = route.view === "session" ? route.id : undefined;
  const next = nextInQueue(queue, here, step);
  if (next === undefined) {
    toasts.add({ title: i18next.t("needs.empty") });
    return;
  }
  if (next === here) toasts.add({ title: i18next.t("needs.only") });
  go({ view: "session", id: next });
  focusRequest();
}

/** What waits there may have to be fetched first. */
const PATIENCE_MS = 5_000;

/** Gives the focus to the first request in sight, as soon as there is one and unless the user does something else meanwhile. */
function focusRequest(): void {
  const since = performance.now();
  const used = new AbortController();
  for (const sign of ["keydown", "pointerdown"])
    addEventListener(sign, () => used.abort(), { capture: true, signal: used.signal });
  requestAnimationFrame(function look() {
    if (used.signal.aborted) return;
    const request = activePane().querySelector<HTMLElement>(WAITING);
    if (request) {
      used.abort();
      request.focus({ preventScroll: true });
      request.scrollIntoView({ block: "nearest" });
    } else if (performance.now() - since < PATIENCE_MS) requestAnimationFrame(look);
    else used.abort();
  });
}
