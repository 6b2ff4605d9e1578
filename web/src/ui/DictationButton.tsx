import { Mic } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { cn } from "../lib/cn";
import { type Recognition, startDictation, recognizer } from "../lib/dictation";
import { IconButton } from "./IconButton";
import { toasts } from "./toasts";

/** Writes down what is said, where the browser can listen. */
export function DictationButton({
  onText,
  disabled,
}: {
  onText: (text: string) => void;
  disabled?: boolean;
}) {
  const { t, i18n } = useTranslation();
  const [listening, setListening] = useState(false);
  const current = useRef<Recognition>(undefined);
  const heard = useRef(onText);
  useEffect(() => {
    heard.current = onText;
  });
  useEffect(() => () => current.current?.abort(), []);
  if (!recognizer()) return null;

  function toggle(): void {
    if (current.current) {
      current.current.stop();
      return;
    }
    current.current = startDictation(i18n.language, {
      onText: (text) => heard.current(text),
      onEnd(problem) {
        current.current = undefined;
        setListening(false);
        if (problem) toasts.add({ title: t(`dictation.problem.${problem}`), type: "error" });
      },
    });
    setListening(current.current !== undefined);
  }

  return (
    <IconButton
      label={listening ? t("dictation.stop") : t("dictation.start")}
      aria-pressed={listening}
      onClick={toggle}
      disabled={disabled}
    >
      <Mic className={cn("size-4", listening && "animate-breathe text-bad")} />
    </IconButton>
  );
}
