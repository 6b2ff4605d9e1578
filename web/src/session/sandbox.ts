/** What can be listed in a sandbox. The server has the last word; this says it before anything is sent. */

const host = /^(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?$/iu;
const addressOfSix = /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/iu;

/** The first entry that is no host. */
export function wrongHost(entries: readonly string[]): string | undefined {
  return entries.find((entry) => !host.test(entry) && !addressOfSix.test(entry));
}

/** The first entry that is no absolute path of a folder. */
export function wrongFolder(entries: readonly string[]): string | undefined {
  return entries.find((entry) => !/^\/+[^/]/u.test(entry) || entry.split("/").includes(".."));
}
