/** The server's clock as seen from here: two machines rarely agree, and a clock that is off would show wrong times. */

/** A difference that the network and a header in whole seconds explain. */
const TOLERANCE_MS = 2_000;

let offset = 0;

/** The server said that it is this time, in milliseconds since 1970. */
export function noteServerTime(time: number, now: number = Date.now()): void {
  const difference = time - now;
  if (!Number.isFinite(difference)) return;
  offset = Math.abs(difference) > TOLERANCE_MS ? difference : 0;
}

/** What the server's clock shows. */
export const serverTime = (now: number = Date.now()): number => now + offset;
