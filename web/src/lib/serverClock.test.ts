import { expect, test } from "vitest";
import { noteServerTime, serverTime } from "./serverClock";

test("a clock that is off is corrected, and a slow answer is not mistaken for one", () => {
  noteServerTime(100_000, 98_500);
  expect(serverTime(98_500)).toBe(98_500);
  noteServerTime(700_000, 100_000);
  expect(serverTime(101_000)).toBe(701_000);
  noteServerTime(Number.NaN, 5);
  expect(serverTime(101_000)).toBe(701_000);
});
