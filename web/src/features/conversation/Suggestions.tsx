import { useEffect } from "react";
import { cn } from "../../lib/cn";
import type { Suggestion } from "../../session/suggestions";

interface SuggestionsProps {
  id: string;
  label: string;
  suggestions: readonly Suggestion[];
  chosen: number;
  onChoose: (index: number) => void;
  onTake: (suggestion: Suggestion) => void;
}

/** What could be meant, above the field. The field keeps the focus; its arrow keys choose. */
export function Suggestions({ id, label, suggestions, chosen, onChoose, onTake }: SuggestionsProps) {
  const chosenId = `${id}-${chosen}`;
  useEffect(() => {
    document.getElementById(chosenId)?.scrollIntoView({ block: "nearest" });
  }, [chosenId]);
  return (
    <div
      id={id}
      role="listbox"
      aria-label={label}
      className="absolute inset-x-0 bottom-full z-30 mb-1.5 max-h-64 overflow-y-auto rounded-xl border border-line bg-raised p-1 shadow-pop"
    >
      {suggestions.map((suggestion, index) => (
        // The field has the focus and its keys choose; the mouse is a second way.
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
        <div
          key={suggestion.value}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === chosen}
          onPointerMove={() => onChoose(index)}
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onTake(suggestion)}
          className={cn(
            "flex cursor-default items-baseline gap-3 rounded-lg px-2.5 py-1.5 text-sm select-none",
            index === chosen && "bg-active",
          )}
        >
          <span className="shrink-0 font-mono text-xs">{suggestion.label}</span>
          {suggestion.hint && <span className="min-w-0 truncate text-xs text-ink-3">{suggestion.hint}</span>}
        </div>
      ))}
    </div>
  );
}
