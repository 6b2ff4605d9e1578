import { cn } from "../lib/cn";

/** How many wait. */
export function Count({ value, className }: { value: number; className?: string }) {
  return (
    <span
      className={cn(
        "inline-flex h-4.5 min-w-4.5 items-center justify-center rounded-full bg-wait px-1.5 text-2xs font-semibold text-canvas tabular-nums",
        className,
      )}
    >
      {value > 99 ? "99+" : value}
    </span>
  );
}
