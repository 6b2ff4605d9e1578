/** What a browser calls itself, in words that people know. */

const browsers: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\b(?:Headless)?Chrome\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const systems: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS"],
  [/\bLinux\b|\bX11\b/, "Linux"],
];

/** `Chrome · Linux`; what is not known is shown as it is. */
export function deviceOf(userAgent: string): string {
  const known = [browsers, systems].flatMap((list) => list.find(([form]) => form.test(userAgent))?.[1] ?? []);
  return known.length > 0 ? known.join(" · ") : userAgent;
}
