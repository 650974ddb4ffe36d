import { beyondPeriod } from './lateness.ts';
import { nowMs, type Seen } from './protocol.ts';
import { createRequestCounter } from './requests.ts';

/** A market's timer as the exchange holds it. Unix milliseconds. */
interface Timer {
  untilMs: number;
  renewedMs: number;
  fired: boolean;
}

const MOST_GAPS = 4_000_000;

/** The exchange's timers, and what it counts: in the exchange alone, so that no subject marks its own work. */
export function createTimers() {
  const timers = new Map<string, Timer>();
  const requests = createRequestCounter();
  const gaps = new Float64Array(MOST_GAPS);
  let gapCount = 0;
  let tally = fresh();
  let firstArmedAt = 0;
  let lastFirstArmedAt = 0;

  function fired(timer: Timer): void {
    if (timer.fired) return;
    timer.fired = true;
    tally.lapses += 1;
  }

  return {
    tally: () => tally,
    /** A request of the private API has come, whatever becomes of it. */
    request: () => requests.count(nowMs()),
    renew(market: string, timeoutMs: number): void {
      const now = nowMs();
      tally.renewals += 1;
      tally.lastRenewalAt = now;
      const timer = timers.get(market);
      if (timer === undefined) {
        if (timers.size === 0) firstArmedAt = now;
        lastFirstArmedAt = now;
        timers.set(market, { untilMs: now + timeoutMs, renewedMs: now, fired: false });
        return;
      }
      if (now > timer.untilMs) fired(timer);
      const left = (timer.untilMs - now) / timeoutMs;
      if (timer.fired) tally.leastSlack = Math.min(tally.leastSlack, 0);
      else tally.leastSlack = Math.min(tally.leastSlack, left);
      tally.longestGapMs = Math.max(tally.longestGapMs, now - timer.renewedMs);
      if (gapCount < MOST_GAPS) {
        gaps[gapCount] = now - timer.renewedMs;
        gapCount += 1;
      }
      timer.untilMs = now + timeoutMs;
      timer.renewedMs = now;
      timer.fired = false;
    },
    remove(market: string): void {
      tally.deletes += 1;
      tally.lastDeleteAt = nowMs();
      timers.delete(market);
    },
    count(): void {
      tally = fresh();
      gapCount = 0;
    },
    forget(): void {
      timers.clear();
      requests.forget();
      firstArmedAt = 0;
      lastFirstArmedAt = 0;
    },
    read(periodMs: number): Seen {
      const now = nowMs();
      let stalestRenewedAt = Number.POSITIVE_INFINITY;
      for (const timer of timers.values()) {
        if (now > timer.untilMs) fired(timer);
        stalestRenewedAt = Math.min(stalestRenewedAt, timer.renewedMs);
      }
      return {
        ...tally,
        leastSlack: Number.isFinite(tally.leastSlack) ? tally.leastSlack : null,
        armed: timers.size,
        firstArmedAt,
        lastFirstArmedAt,
        stalestRenewedAt: timers.size === 0 ? 0 : stalestRenewedAt,
        mostInWindow: requests.most(),
        meanHoldMs: tally.held === 0 ? 0 : tally.heldMs / tally.held,
        beyondPeriod: beyondPeriod(gaps.subarray(0, gapCount), periodMs),
      };
    },
  };
}

function fresh() {
  return {
    renewals: 0,
    deletes: 0,
    failed: 0,
    badSignatures: 0,
    staleNonces: 0,
    connections: 0,
    lapses: 0,
    leastSlack: Number.POSITIVE_INFINITY,
    longestGapMs: 0,
    lastRenewalAt: 0,
    lastDeleteAt: 0,
    held: 0,
    heldMs: 0,
  };
}
