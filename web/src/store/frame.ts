/**
 * Collects what arrives and hands it on once per animation frame. What is only one of many, like the words of an answer,
 * waits for the others of its moment: 200 words a second are 30 renderings.
 */

/** A hidden page gets no animation frames; it still has to keep up, only less often. */
const HIDDEN_PAUSE_MS = 250;

/** The least time between two renderings of what can wait. Nobody reads faster. */
const CALM_MS = 30;

export interface FrameQueue<T> {
  push(value: T): void;
  /** Hands on what waits, without waiting for a frame. */
  flush(): void;
}

export function frameQueue<T>(onFrame: (values: T[]) => void, canWait: (value: T) => boolean): FrameQueue<T> {
  let waiting: T[] = [];
  let urgent = false;
  let flushedAt = -CALM_MS;
  let frame: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    if (waiting.length === 0) return;
    if (frame !== undefined) cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = undefined;
    flushedAt = performance.now();
    urgent = false;
    const values = waiting;
    waiting = [];
    onFrame(values);
  }

  function onAnimationFrame(now: number): void {
    if (urgent || now - flushedAt >= CALM_MS) flush();
    else frame = requestAnimationFrame(onAnimationFrame);
  }

  return {
    flush,
    push(value) {
      waiting.push(value);
      urgent ||= !canWait(value);
      if (frame !== undefined) return;
      frame = requestAnimationFrame(onAnimationFrame);
      // As well, because a page that is hidden after the request would wait for its frame until it is shown again.
      timer = setTimeout(flush, HIDDEN_PAUSE_MS);
    },
  };
}
