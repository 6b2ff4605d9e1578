import type { ComponentProps } from "react";
import { cn } from "../lib/cn";

type Variant = "primary" | "secondary" | "ghost" | "danger";

const variants: Record<Variant, string> = {
  primary: "bg-accent text-accent-ink hover:bg-accent-strong shadow-card",
  secondary: "bg-raised text-ink border border-line-strong hover:bg-hover shadow-card",
  ghost: "text-ink-2 hover:bg-hover hover:text-ink",
  danger: "bg-raised text-bad border border-line-strong hover:bg-bad-soft shadow-card",
};

interface ButtonProps extends ComponentProps<"button"> {
  variant?: Variant;
  size?: "sm" | "md";
}

export function Button({
  variant = "secondary",
  size = "md",
  className,
  type = "button",
  ...rest
}: ButtonProps) {
  return (
    <button
      type={type}
      className={cn(
        "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-lg font-medium whitespace-nowrap transition-colors select-none disabled:pointer-events-none disabled:opacity-50",
        size === "sm" ? "h-7 px-2.5 text-xs" : "h-8.5 px-3 text-sm",
        variants[variant],
        className,
      )}
      {...rest}
    />
  );
}
