/** Collects what arrives and hands it on once per animation frame: 200 words a second are at most 60 renderings. */

/** A hidden page gets no animation frames; it still has to keep up, only less often. */
const HIDDEN_PAUSE_MS = 250;

export interface FrameQueue<T> {
  push(value: T): void;
}

export function frameQueue<T>(onFrame: (values: T[]) => void): FrameQueue<T> {
  let waiting: T[] = [];
  let scheduled: { cancel(): void } | undefined;

  function flush(): void {
    scheduled?.cancel();
    scheduled = undefined;
    const values = waiting;
    waiting = [];
    if (values.length > 0) onFrame(values);
  }

  function schedule(): void {
    // Both, because a page that is hidden after the request would wait for its frame until it is shown again.
    const frame = requestAnimationFrame(flush);
    const timer = setTimeout(flush, HIDDEN_PAUSE_MS);
    scheduled = {
      cancel() {
        cancelAnimationFrame(frame);
        clearTimeout(timer);
      },
    };
  }

  return {
    push(value) {
      waiting.push(value);
      if (!scheduled) schedule();
    },
  };
}
