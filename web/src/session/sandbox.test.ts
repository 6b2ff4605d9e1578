import { expect, test } from "vitest";
import { wrongFolder, wrongHost } from "./sandbox";

test("what is no host is named", () => {
  for (const entry of [
    "example.com",
    "*.example.com:8443",
    "*",
    "10.0.0.1",
    "[::1]:5",
    "fe80::1",
    "localhost:3000",
  ])
    expect(wrongHost([entry])).toBeUndefined();
  for (const entry of [
    "http://example.com",
    "example.com/",
    "a b",
    "*.",
    "a..b",
    "example.com:0",
    "me@example.com",
  ])
    expect(wrongHost(["example.com", entry])).toBe(entry);
});

test("what is no folder is named", () => {
  expect(wrongFolder(["/home/me/.cache", "/a b"])).toBeUndefined();
  for (const entry of ["cache", "~/x", "/", "/a/../etc"]) expect(wrongFolder([entry])).toBe(entry);
});
