/** Asks the worker for colours. The worker, the grammars and the themes are loaded with the first question. */

export interface Token {
  readonly text: string;
  readonly color: string;
}
export type TokenLine = readonly Token[];

export interface HighlightRequest {
  readonly id: number;
  readonly code: string;
  readonly language: string;
}
export interface HighlightAnswer {
  readonly id: number;
  readonly lines: TokenLine[] | undefined;
}

/** Colours help nobody in a file of this size, and cost seconds. */
const LONGEST = 60_000;

let worker: Worker | undefined;
let nextId = 0;
const waiting = new Map<number, (lines: TokenLine[] | undefined) => void>();

export function highlight(code: string, language: string): Promise<TokenLine[] | undefined> {
  if (code.length > LONGEST) return Promise.resolve(undefined);
  worker ??= start();
  const id = nextId;
  nextId += 1;
  const answer = new Promise<TokenLine[] | undefined>((resolve) => waiting.set(id, resolve));
  worker.postMessage({ id, code, language } satisfies HighlightRequest);
  return answer;
}

function start(): Worker {
  const started = new Worker(new URL("./highlight.worker.ts", import.meta.url), { type: "module" });
  started.addEventListener("message", ({ data }: MessageEvent<HighlightAnswer>) => {
    waiting.get(data.id)?.(data.lines);
    waiting.delete(data.id);
  });
  return started;
}
