interface Timers {
  readonly now: () => { readonly monoMs: number };
  readonly after: (delayMs: number, run: () => void) => () => void;
}

/** What `result` comes to; null where that takes longer than `withinMs`. */
export function within<T>(clock: Timers, withinMs: number, result: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.after(withinMs, () => late.resolve(null));
  return Promise.race([result, late.promise]).finally(cancel);
}

/** Gives the event loop back whenever the work that shares it has held it for 3 ms: renewals wait. Await it between steps. */
export function createBreather(clock: Timers): () => Promise<void> {
  let sliceStartMs = clock.now().monoMs;
  let pause: Promise<void> | null = null;
  return async () => {
    if (pause === null && clock.now().monoMs - sliceStartMs < 3) return;
    pause ??= new Promise<void>((resolve) => void clock.after(0, resolve)).then(() => {
      pause = null;
      sliceStartMs = clock.now().monoMs;
    });
    await pause;
  };
}
