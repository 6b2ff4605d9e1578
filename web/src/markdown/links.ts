/** Which links of an answer may be followed. Everything a model or a repository writes passes through here. */

const SAFE = new Set(["http:", "https:", "mailto:"]);

/** The address, if it leads somewhere harmless; relative ones would lead into this page and are none. */
export function safeLink(href: string | undefined): string | undefined {
  if (!href) return undefined;
  try {
    const url = new URL(href);
    return SAFE.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
