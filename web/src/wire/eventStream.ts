/** Server-sent events over `fetch`: the browser's own client can't send the page's secret. */
import { request } from "./api";
import { pauseBefore } from "./socket";

export interface StreamedEvent {
  readonly type: string;
  readonly data: string;
}

/** Follows a stream until it is told to stop, and connects again when it breaks. */
export function followStream(path: string, onEvent: (event: StreamedEvent) => void): () => void {
  const stopping = new AbortController();
  void follow(path, onEvent, stopping.signal);
  return () => stopping.abort();
}

async function follow(
  path: string,
  onEvent: (event: StreamedEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const response = await request(path, { signal, headers: { Accept: "text/event-stream" } });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        attempt = 0;
        for (const event of parser.push(piece.value)) onEvent(event);
      }
    } catch {
      // The connection's end and a refusal are alike: try again later.
    }
    await pause(pauseBefore(attempt), signal);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Cuts a stream into events, however it is split. */
export class EventParser {
  private rest = "";
  private type = "";
  private data: string[] = [];

  push(text: string): StreamedEvent[] {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.line(line.replace(/\r$/, "")));
  }

  private line(line: string): StreamedEvent[] {
    if (line === "") {
      const event = { type: this.type || "message", data: this.data.join("\n") };
      const complete = this.data.length > 0;
      this.type = "";
      this.data = [];
      return complete ? [event] : [];
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.type = value;
    else if (field === "data") this.data.push(value);
    return [];
  }
}
