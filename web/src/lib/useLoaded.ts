import { useCallback, useEffect, useState } from "react";

export type Loaded<T> =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly value: T }
  | { readonly state: "failed"; readonly message: string };

/** Asks once for each `key`, and again on `reload`. An answer to an earlier question is dropped. */
export function useLoaded<T>(key: string, load: () => Promise<T>): [Loaded<T>, () => void] {
  const [loaded, setLoaded] = useState<{ key: string; result: Loaded<T> }>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let current = true;
    const done = (result: Loaded<T>) => current && setLoaded({ key, result });
    load().then(
      (value) => done({ state: "ready", value }),
      (error: Error) => done({ state: "failed", message: error.message }),
    );
    return () => {
      current = false;
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `key` says what is asked for
  }, [key, round]);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  return [loaded?.key === key ? loaded.result : { state: "loading" }, reload];
}
