import { type ReactNode, useId } from "react";

interface OptionProps {
  type: "checkbox" | "radio";
  name?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  label: string;
  hint?: string;
}

/** One thing that can be chosen, with a line that says what it means. */
export function Option({ type, name, checked, onChange, label, hint }: OptionProps) {
  const described = useId();
  return (
    <label className="flex items-start gap-2.5 rounded-lg py-0.5 text-sm">
      <input
        type={type}
        name={name}
        checked={checked}
        aria-describedby={hint ? described : undefined}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <span className="min-w-0">
        <span className="block">{label}</span>
        {hint && (
          <span id={described} className="block text-xs text-ink-3">
            {hint}
          </span>
        )}
      </span>
    </label>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  children: (ids: { id: string; described: string | undefined }) => ReactNode;
}

/** A field with its name above it and what it means below it. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  const described = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block text-sm font-medium">
        {label}
      </label>
      {children({ id, described: hint ? described : undefined })}
      {hint && (
        <p id={described} className="mt-1 text-xs text-ink-3">
          {hint}
        </p>
      )}
    </div>
  );
}

export const inputClass =
  "w-full rounded-lg border border-line-strong bg-canvas px-3 text-sm placeholder:text-ink-3";
