import { type ComponentProps, type KeyboardEvent, type RefObject, useRef } from "react";
import { cn } from "../lib/cn";
import { promptKey } from "./promptKeys";

interface PromptFieldProps extends Omit<ComponentProps<"textarea">, "onChange" | "value" | "ref"> {
  ref?: RefObject<HTMLTextAreaElement | null>;
  value: string;
  onChange: (value: string) => void;
  onSend: () => void;
  onStop?: () => void;
  /** Looks at a key first; true if that was all. */
  onKey?: (event: KeyboardEvent<HTMLTextAreaElement>) => boolean;
  invalid: boolean;
}

/** A field that grows with its text. Enter sends, Ctrl+Enter and Shift+Enter break the line, Escape stops. */
export function PromptField({
  ref,
  value,
  onChange,
  onSend,
  onStop,
  onKey,
  invalid,
  className,
  ...rest
}: PromptFieldProps) {
  const own = useRef<HTMLTextAreaElement>(null);

  function onKeyDown(event: KeyboardEvent<HTMLTextAreaElement>): void {
    if (!event.nativeEvent.isComposing && onKey?.(event)) {
      event.preventDefault();
      return;
    }
    const meaning = promptKey({ ...pick(event), isComposing: event.nativeEvent.isComposing });
    if (meaning === undefined || (meaning === "stop" && !onStop)) return;
    event.preventDefault();
    if (meaning === "send") onSend();
    else if (meaning === "stop") onStop?.();
    // Through the browser's own editing, so that undo knows of it.
    else document.execCommand("insertText", false, "\n");
  }

  return (
    <textarea
      ref={ref ?? own}
      rows={1}
      dir="auto"
      value={value}
      aria-invalid={invalid || undefined}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={onKeyDown}
      className={cn(
        "field-sizing-content max-h-[40dvh] w-full resize-none bg-transparent outline-none",
        className,
      )}
      {...rest}
    />
  );
}

function pick({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyboardEvent) {
  return { key, ctrlKey, metaKey, shiftKey, altKey };
}
