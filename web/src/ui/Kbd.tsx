import { cn } from "../lib/cn";

export function Kbd({ children, className }: { children: string; className?: string }) {
  return (
    <kbd
      className={cn(
        "inline-flex h-4.5 min-w-4.5 items-center justify-center rounded border border-current/25 px-1 font-sans text-2xs font-medium opacity-90 pointer-coarse:hidden",
        className,
      )}
    >
      {children}
    </kbd>
  );
}
