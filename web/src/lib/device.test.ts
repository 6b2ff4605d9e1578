import { expect, it } from "vitest";
import { deviceOf } from "./device";

it.each([
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Chrome · Linux",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1",
    "Safari · iPhone",
  ],
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox · Windows"],
  ["tiller (command line)", "tiller (command line)"],
  ["", ""],
])("%s", (userAgent, device) => expect(deviceOf(userAgent)).toBe(device));

it("knows Chrome without a window, which also calls itself Safari", () => {
  const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/140.0.0.0 Safari/537.36";
  expect(deviceOf(agent)).toBe("Chrome · Linux");
});
