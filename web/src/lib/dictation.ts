/** The browser's speech recognition, where it has one. The types are not part of TypeScript's own. */

interface RecognitionResult {
  readonly isFinal: boolean;
  readonly [index: number]: { readonly transcript: string } | undefined;
}

interface RecognitionEvent {
  readonly resultIndex: number;
  readonly results: ArrayLike<RecognitionResult>;
}

export interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: RecognitionEvent) => void) | null;
  onerror: ((event: { readonly error: string }) => void) | null;
  onend: (() => void) | null;
  start: () => void;
  stop: () => void;
  abort: () => void;
}

type Recognizer = new () => Recognition;

export function recognizer(): Recognizer | undefined {
  const browser = globalThis as { SpeechRecognition?: Recognizer; webkitSpeechRecognition?: Recognizer };
  return browser.SpeechRecognition ?? browser.webkitSpeechRecognition;
}

/** Why nothing is heard: the microphone is not allowed, there is none, or the browser's service can't be reached. */
export type DictationProblem = "denied" | "microphone" | "service";

const problems: Readonly<Record<string, DictationProblem | undefined>> = {
  "not-allowed": "denied",
  "service-not-allowed": "denied",
  "audio-capture": "microphone",
  network: "service",
  "language-not-supported": "service",
};

interface Listener {
  readonly onText: (text: string) => void;
  readonly onEnd: (problem: DictationProblem | undefined) => void;
}

/** Listens until it is stopped, and passes on each phrase once it is certain. */
export function startDictation(language: string, { onText, onEnd }: Listener): Recognition | undefined {
  const Available = recognizer();
  if (!Available) return undefined;
  const recognition = new Available();
  let problem: DictationProblem | undefined;
  recognition.lang = language;
  recognition.continuous = true;
  recognition.interimResults = false;
  recognition.onresult = ({ results, resultIndex }) => {
    for (let index = resultIndex; index < results.length; index += 1) {
      const result = results[index];
      const words = result?.isFinal ? result[0]?.transcript.trim() : undefined;
      if (words) onText(words);
    }
  };
  // Only handlers are common to all browsers that have it.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener
  recognition.onerror = ({ error }) => {
    problem = problems[error];
  };
  recognition.onend = () => onEnd(problem);
  try {
    recognition.start();
    return recognition;
  } catch {
    onEnd("microphone");
    return undefined;
  }
}

/** What was heard, after what is there: with a space, except between Chinese characters. */
export function joined(text: string, heard: string): string {
  const needsSpace = text !== "" && !/\s$/.test(text) && !/[\u3000-\u9fff\uff00-\uffef]$/.test(text);
  return `${text}${needsSpace ? " " : ""}${heard}`;
}
