const WINDOW_MS = 10_000;
/** More than any subject sends in the window. */
const MOST = 1 << 20;

/** Counts requests in any 10 s, as the limit does: from one `forget` to the next. */
export function createRequestCounter() {
  const times = new Float64Array(MOST);
  let first = 0;
  let next = 0;
  let most = 0;
  return {
    count(nowMs: number): void {
      times[next % MOST] = nowMs;
      next += 1;
      while (nowMs - (times[first % MOST] ?? 0) > WINDOW_MS) first += 1;
      most = Math.max(most, next - first);
    },
    most: () => most,
    forget(): void {
      first = 0;
      next = 0;
      most = 0;
    },
  };
}
