/** The browser's storage, which may be closed to us or full: then the page works without a memory. */

export function readStored(key: string): string | undefined {
  try {
    return localStorage.getItem(`tiller.${key}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function writeStored(key: string, value: string | undefined): void {
  try {
    if (value === undefined || value === "") localStorage.removeItem(`tiller.${key}`);
    else localStorage.setItem(`tiller.${key}`, value);
  } catch {
    // Nothing that the user could do about it, and nothing that breaks.
  }
}
