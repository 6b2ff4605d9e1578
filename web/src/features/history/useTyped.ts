import { useEffect, useState } from "react";

/** The text of a field whose value stands in the address: passed on, trimmed, once nothing was typed for a while. */
export function useTyped(value: string, onChange: (value: string) => void, pauseMs: number) {
  const [text, setText] = useState(value);
  const [sent, setSent] = useState(value);
  // The address was changed elsewhere: by the back button, or a link.
  if (value !== sent) {
    setSent(value);
    setText(value);
  }
  useEffect(() => {
    if (text.trim() === sent) return;
    const timer = setTimeout(() => {
      setSent(text.trim());
      onChange(text.trim());
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [text, sent, onChange, pauseMs]);
  return [text, setText] as const;
}
