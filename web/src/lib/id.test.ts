import { expect, it } from "vitest";
import { newId } from "./id";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

it("makes UUIDs, also where the browser has no word for them", () => {
  const insecure = { getRandomValues: crypto.getRandomValues.bind(crypto) } as Crypto;
  for (const source of [crypto, insecure]) {
    expect(newId(source)).toMatch(UUID);
    expect(newId(source)).not.toBe(newId(source));
  }
});
