import { expect, test } from "vitest";
import { lines } from "./lines";

test("entries are taken one to a line or between commas, each once", () => {
  expect(lines(" a.test \n\nb.test, a.test\r\n/with space/x\n")).toEqual([
    "a.test",
    "b.test",
    "/with space/x",
  ]);
  expect(lines(" \n,")).toEqual([]);
});
