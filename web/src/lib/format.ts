/** Numbers, times and paths as people read them. */

/** Making a formatter costs far more than using it, and figures are written again with every frame of a stream. */
const numbers = new Map<string, Intl.NumberFormat>();

function numberFormat(language: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${language} ${JSON.stringify(options)}`;
  const known = numbers.get(key) ?? new Intl.NumberFormat(language, options);
  numbers.set(key, known);
  return known;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago, in the shortest words of the language: "now", "5m", "3h", "2d", or a date. */
export function formatAge(then: number, now: number, language: string): string {
  const age = Math.max(0, now - then);
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "narrow" });
  if (age < MINUTE) return relative.format(0, "second");
  if (age < HOUR) return relative.format(-Math.floor(age / MINUTE), "minute");
  if (age < DAY) return relative.format(-Math.floor(age / HOUR), "hour");
  if (age < 7 * DAY) return relative.format(-Math.floor(age / DAY), "day");
  return new Intl.DateTimeFormat(language, { month: "short", day: "numeric" }).format(then);
}

/** A day and a time of day, for what is to come. */
export function formatMoment(time: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  }).format(time);
}

export function formatDuration(milliseconds: number, language: string): string {
  return inUnits(milliseconds / 1000, language, "tenths");
}

/** For a clock that runs: in whole seconds, since tenths that jump with every tick would not be read. */
export function formatClock(milliseconds: number, language: string): string {
  return inUnits(Math.max(0, Math.floor(milliseconds / 1000)), language, "whole");
}

function inUnits(seconds: number, language: string, precision: "tenths" | "whole"): string {
  const unit = (value: number, name: "second" | "minute" | "hour", digits: number) =>
    numberFormat(language, {
      style: "unit",
      unit: name,
      unitDisplay: "narrow",
      maximumFractionDigits: digits,
      minimumFractionDigits: digits,
    }).format(value);
  if (seconds < 9.95 && precision === "tenths") return unit(seconds, "second", 1);
  // Rounded first: 59.6 seconds are a minute, and never 60 seconds.
  const whole = Math.round(seconds);
  if (whole < 60) return unit(whole, "second", 0);
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${unit(minutes, "minute", 0)} ${unit(whole % 60, "second", 0)}`;
  return `${unit(Math.floor(minutes / 60), "hour", 0)} ${unit(minutes % 60, "minute", 0)}`;
}

/** To the millisecond, for those who look closer. */
export function formatMilliseconds(milliseconds: number, language: string): string {
  return numberFormat(language, { style: "unit", unit: "millisecond", unitDisplay: "short" }).format(
    Math.round(milliseconds),
  );
}

/** A share from 0 to 1, in whole percent. */
export function formatShare(share: number, language: string): string {
  return numberFormat(language, { style: "percent", maximumFractionDigits: 0 }).format(share);
}

/** Two digits for whole cents, more for the small sums that single turns cost. */
export function formatCost(usd: number, language: string): string {
  const digits = usd === 0 || usd >= 1 ? 2 : usd >= 0.01 ? 3 : 4;
  return numberFormat(language, {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(usd);
}

export function formatCount(count: number, language: string): string {
  return numberFormat(language, { notation: count >= 10_000 ? "compact" : "standard" }).format(count);
}

export function baseName(path: string): string {
  const trimmed = path.replace(/[/\\]+$/, "");
  return trimmed.slice(Math.max(trimmed.lastIndexOf("/"), trimmed.lastIndexOf("\\")) + 1) || path;
}

/** A path as seen from the session's folder, where it lies inside it. */
export function relativePath(path: string, folder: string | undefined): string {
  const base = folder?.replace(/\/+$/, "");
  return base && path.startsWith(`${base}/`) ? path.slice(base.length + 1) : path;
}

/** One word for a POSIX shell, whatever it contains. */
export function shellQuote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** In the unit that leaves the fewest digits: 812 kB, 1.4 GB. */
export function formatBytes(bytes: number, language: string): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
  const rank = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** rank;
  return numberFormat(language, {
    style: "unit",
    unit: units[rank],
    unitDisplay: "short",
    maximumFractionDigits: value < 10 && rank > 0 ? 1 : 0,
  }).format(value);
}
