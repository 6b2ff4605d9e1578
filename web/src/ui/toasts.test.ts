import { describe, expect, it } from "vitest";
import { listening, manager, toasts } from "./toasts";

describe("toasts", () => {
  it("that come before anyone shows them wait for that, unless they are closed", () => {
    const shown: string[] = [];
    const first = toasts.add({ title: "first" });
    toasts.add({ title: "second" });
    toasts.close(first);
    const stop = manager[" subscribe"]?.(({ options }) => shown.push(String(options.title)));
    listening();
    toasts.add({ title: "third" });
    stop?.();
    expect(shown).toEqual(["second", "third"]);
  });
});
