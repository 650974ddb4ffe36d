/** A limit of the API document: so many requests in any stretch of `windowMs`. */
export interface RateLimit {
  readonly requests: number;
  readonly windowMs: number;
}

/**
 * A sliding window. The returned function says whether a request at `nowMs` is within the limit, and counts it if so;
 * refused requests do not count. Entries from the future (the clock was set back) are forgotten.
 */
export function createRateWindow(limit: RateLimit): (nowMs: number) => boolean {
  const accepted: number[] = [];
  let oldest = 0;
  return (nowMs) => {
    const first = accepted[oldest];
    const full = accepted.length === limit.requests && first !== undefined;
    if (full && first <= nowMs && nowMs - first < limit.windowMs) return false;
    accepted[oldest] = nowMs;
    oldest = (oldest + 1) % limit.requests;
    return true;
  };
}
