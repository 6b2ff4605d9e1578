import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { forgetPageSecret, pageHeaders, socketProtocols, takePageSecret } from "./pageSecret";

const address = { hash: "", pathname: "/", search: "" };
const replaceState = vi.fn<History["replaceState"]>();

beforeEach(() => {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  });
  vi.stubGlobal("location", address);
  vi.stubGlobal("history", { replaceState });
});
afterEach(() => {
  forgetPageSecret();
  vi.unstubAllGlobals();
  replaceState.mockClear();
});

it("moves from the address into the storage, and goes along with calls", () => {
  address.hash = "#k=0123abcd";
  takePageSecret();
  expect(replaceState).toHaveBeenCalledWith(null, "", "/");
  expect(pageHeaders()).toEqual({ "X-Tiller-Page": "0123abcd" });
  expect(socketProtocols()).toEqual(["tiller.v1", "page.0123abcd"]);
  forgetPageSecret();
  expect(pageHeaders()).toEqual({});
});

it("leaves other addresses alone", () => {
  address.hash = "#/s/k=1";
  takePageSecret();
  expect(replaceState).not.toHaveBeenCalled();
  expect(socketProtocols()).toEqual(["tiller.v1"]);
});

it("works for a while without storage", () => {
  vi.stubGlobal("localStorage", undefined);
  address.hash = "#k=99";
  takePageSecret();
  expect(pageHeaders()).toEqual({ "X-Tiller-Page": "99" });
});
