import { Select } from "@base-ui/react/select";
import { Check, ChevronDown, TriangleAlert } from "lucide-react";
import { cn } from "../lib/cn";
import { Loading } from "./Loading";

interface Option<T extends string> {
  readonly value: T;
  readonly label: string;
  /** Said on a phone while it is chosen. */
  readonly short?: string;
  readonly hint?: string;
  /** Looks like what it is, in the list and while it is chosen. */
  readonly danger?: boolean;
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: readonly Option<T>[];
  onChange: (value: T) => void;
  /** More options are on their way. */
  loading?: boolean;
  className?: string;
}

/** One of a few, each with a line that explains it. */
export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
  loading = false,
  className,
}: ChoiceProps<T>) {
  const chosen = options.find((option) => option.value === value);
  return (
    <Select.Root
      items={options.map((option) => ({ value: option.value, label: option.label }))}
      value={value}
      onValueChange={(next) => next !== null && onChange(next as T)}
    >
      <Select.Trigger
        aria-label={label}
        className={cn(
          "inline-flex h-8 shrink-0 items-center gap-1.5 rounded-lg px-2.5 text-sm max-sm:gap-0.5 max-sm:px-2 max-sm:text-xs transition-colors",
          chosen?.danger
            ? "bg-bad-soft font-medium text-bad hover:bg-bad-soft data-[popup-open]:bg-bad-soft"
            : "text-ink-2 hover:bg-hover hover:text-ink data-[popup-open]:bg-active",
          className,
        )}
      >
        {chosen?.danger && <TriangleAlert className="size-3.5 shrink-0 max-sm:mr-1" aria-hidden />}
        <Select.Value className="truncate">
          {chosen?.short ? (
            <>
              <span className="max-sm:hidden">{chosen.label}</span>
              <span className="sm:hidden">{chosen.short}</span>
            </>
          ) : (
            (chosen?.label ?? value)
          )}
        </Select.Value>
        <Select.Icon>
          <ChevronDown className={cn("size-3.5", chosen?.danger ? "text-bad" : "text-ink-3")} />
        </Select.Icon>
      </Select.Trigger>
      <Select.Portal>
        <Select.Positioner className="z-50" sideOffset={6} alignItemWithTrigger={false} align="start">
          <Select.Popup className="max-w-[min(22rem,calc(100vw-2rem))] rounded-lg border border-line bg-raised p-1 shadow-pop transition-opacity outline-none data-[ending-style]:opacity-0 data-[starting-style]:opacity-0">
            {options.map((option) => (
              <Select.Item
                key={option.value}
                value={option.value}
                className="flex cursor-default items-start gap-2.5 rounded-md py-1.5 pr-2.5 pl-2 text-sm outline-none select-none data-[highlighted]:bg-hover"
              >
                <span className="mt-0.5 size-3.5 shrink-0">
                  <Select.ItemIndicator>
                    <Check className="size-3.5 text-accent" />
                  </Select.ItemIndicator>
                </span>
                <span className="min-w-0">
                  <Select.ItemText className={cn("font-medium", option.danger && "text-bad")}>
                    {option.label}
                  </Select.ItemText>
                  {option.hint && (
                    <span className={cn("block text-xs", option.danger ? "text-bad" : "text-ink-3")}>
                      {option.hint}
                    </span>
                  )}
                </span>
              </Select.Item>
            ))}
            {loading && <Loading className="px-2 py-1.5" />}
          </Select.Popup>
        </Select.Positioner>
      </Select.Portal>
    </Select.Root>
  );
}
