import type { Clock } from '../ports.ts';

/** Lets work through in slices. */
export interface Turnstile {
  /** Calls `run` now, or after others who came earlier. */
  pass(run: () => void): void;
  /** Lets nobody through any more. */
  close(): void;
}

/** All requests together hold the event loop for this long at a time; then the renewals have their turn. */
const SLICE_MS = 4;

/** Runs pieces of work in the order in which they came, and gives the event loop back after every few milliseconds. */
export function createTurnstile(clock: Clock): Turnstile {
  const waiting: (() => void)[] = [];
  /** When the slice began; null where none is running. */
  let startedMs: number | null = null;
  let closed = false;

  const isOver = (): boolean => startedMs !== null && clock.now().monoMs - startedMs >= SLICE_MS;
  function begin(): void {
    startedMs = clock.now().monoMs;
    clock.after(0, next);
  }
  function next(): void {
    startedMs = null;
    if (waiting.length === 0 || closed) return;
    begin();
    let taken = 0;
    for (; taken < waiting.length && !isOver(); taken += 1) waiting[taken]?.();
    waiting.splice(0, taken);
  }

  return {
    pass(run) {
      if (closed) return;
      if (startedMs === null) begin();
      if (waiting.length > 0 || isOver()) waiting.push(run);
      else run();
    },
    close() {
      closed = true;
      waiting.length = 0;
    },
  };
}
