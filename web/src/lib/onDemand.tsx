/** Parts of the page that are loaded when they are needed, or beforehand once the page has nothing else to do. */
import { type ComponentType, createElement, useEffect, useReducer, useState } from "react";

type OnDemand<Props> = ComponentType<Props> & { preload: () => void };

/**
 * Shows `Waiting` until the part is there. Unlike with React's `lazy`, a part that could not be fetched is tried again
 * when it is drawn anew; what fetching it threw goes to the error boundary.
 */
export function onDemand<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  Waiting: ComponentType<Props>,
): OnDemand<Props> {
  let loaded: ComponentType<Props> | undefined;
  let loading: Promise<void> | undefined;

  function start(): Promise<void> {
    loading ??= load().then(
      (module) => {
        loaded = module.default;
      },
      (error: unknown) => {
        loading = undefined;
        throw error;
      },
    );
    return loading;
  }

  function Part(props: Props) {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    const [failure, setFailure] = useState<unknown>();
    useEffect(() => {
      if (!loaded) start().then(redraw, setFailure);
    }, []);
    if (failure !== undefined) throw failure;
    return createElement(loaded ?? Waiting, props);
  }

  return Object.assign(Part, {
    // The part itself will say so if this fails.
    preload: () => void start().catch(() => {}),
  });
}

/** Runs when the page is idle; browsers without a word for that get a moment's delay. */
export function whenIdle(work: () => void): void {
  if ("requestIdleCallback" in window) window.requestIdleCallback(work, { timeout: 5_000 });
  else setTimeout(work, 2_000);
}
