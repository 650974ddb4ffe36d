import pRetry from 'p-retry';
import type { FailureReason } from '../core/events.ts';
import type { Cancel, Clock, PingOutcome } from '../ports.ts';
import { classifyPing } from './classify.ts';
import { ping } from './operations.ts';
import type { Session } from './session.ts';

class PingFailure extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, detail: string) {
    super(detail);
    this.name = 'PingFailure';
    this.reason = reason;
  }
}

/** One repetition after 0.05 to 0.1 s. */
const BACKOFF = {
  retries: 1,
  minTimeout: 50,
  maxTimeout: 100,
  randomize: true,
  unref: true,
} as const;

/** The first attempt may use half of the time, so that a second one on a fresh connection still fits. */
const FIRST_SHARE = 0.5;

/**
 * Pings one base address, with one retry soon after over a fresh connection; a lost keep-alive connection does not count
 * as an exchange that is down. Gives up after `timeoutMs` altogether. Calls `settled` exactly once, never
 * synchronously; the returned function gives up with reason `aborted`.
 */
export function startPing(
  session: Session,
  clock: Clock,
  base: string,
  timeoutMs: number,
  settled: (outcome: PingOutcome) => void,
): Cancel {
  const begunMs = clock.now().monoMs;
  const stopping = new AbortController();
  let ended = false;
  let cancelAttempt: Cancel = () => undefined;

  function end(outcome: PingOutcome): void {
    if (ended) return;
    ended = true;
    cancelDeadline();
    cancelAttempt();
    stopping.abort();
    queueMicrotask(() => settled(outcome));
  }

  function fail(reason: FailureReason, detail: string): void {
    end({ ok: false, latencyMs: clock.now().monoMs - begunMs, reason, detail });
  }

  function attempt(number: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const sentMs = clock.now().monoMs;
      const cancelCall = session.call(
        ping,
        null,
        { base, fresh: number > 1, mayWrite: () => !ended },
        (result, redact) => ({ kind: 'ping', result: classifyPing(result, redact) }),
        ({ result }) => {
          cancelShare();
          if (result.ok) resolve(clock.now().monoMs - sentMs);
          else reject(new PingFailure(result.reason, result.detail));
        },
      );
      const cancelShare = number > 1 ? () => undefined : clock.after(timeoutMs * FIRST_SHARE, cancelCall);
      cancelAttempt = cancelCall;
    });
  }

  const cancelDeadline = clock.after(timeoutMs, () => fail('timeout', `no answer within ${timeoutMs} ms`));
  pRetry(attempt, {
    ...BACKOFF,
    maxRetryTime: timeoutMs,
    signal: stopping.signal,
    // Asking again at once is what a rate limit is against.
    shouldRetry: ({ error }) => !(error instanceof PingFailure && error.reason === 'rate_limited'),
  }).then(
    (latencyMs) => end({ ok: true, latencyMs }),
    (error: unknown) =>
      error instanceof PingFailure ? fail(error.reason, error.message) : fail('aborted', String(error)),
  );
  return () => fail('aborted', 'the ping was given up');
}
