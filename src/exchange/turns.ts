import type { Cancel, Clock } from '../ports.ts';
import { NetworkError, ThrottledError } from './errors.ts';
import { createLimiter, type Limiter } from './limits.ts';
import { type Limit, type Operation, syncKillSwitch } from './operations.ts';

/** The documented limits of all operations, each with a limiter of its own. */
export interface Turns {
  /**
   * Waits for a permit, at most half of `timeoutMs`, so that time is left for the request. Rejects with a
   * ThrottledError where the limit leaves no room for so long, and with a NetworkError of reason `aborted` where the
   * call is withdrawn or the client closed before. Nothing has been sent then.
   */
  take(operation: Operation<never>, timeoutMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** Nothing gets a permit afterwards. */
  close(): void;
}

/** How long a call waits at most for a permit that is there. A limiter that has stalled must not hold it up. */
const STALLED_MS = 1_000;
const NOT_SENT = { maybeApplied: false } as const;

/** The error of a call whose signal has fired; null where it has not. */
export function withdrawn(signal: AbortSignal | undefined, maybeApplied: boolean): NetworkError | null {
  if (signal?.aborted !== true) return null;
  const cause: unknown = signal.reason;
  return new NetworkError('the call was withdrawn by its signal', 'aborted', { maybeApplied, cause });
}

/** Calls `cancel` when the signal fires. The returned function ends that. */
export function onAbort(signal: AbortSignal | undefined, cancel: Cancel): Cancel {
  signal?.addEventListener('abort', cancel, { once: true });
  return () => signal?.removeEventListener('abort', cancel);
}

function noRoom(
  operation: Operation<never>,
  { requests, windowMs }: Limit,
  waitedMs: number,
): ThrottledError {
  const limit = `${requests} requests in ${windowMs / 1000} s`;
  return new ThrottledError(
    `not sent: the limit of ${operation.name}, ${limit}, left no room within ${waitedMs} ms`,
  );
}

/** `budget` is the part of the kill-switch's limit that may be used; the whole where it is not given. */
export function createTurns(clock: Clock, budget: Limit | undefined): Turns {
  const limiters = new Map<string, Limiter>();
  const closing = new AbortController();

  function limiterOf(name: string, limit: Limit): Limiter {
    const limiter = limiters.get(name) ?? createLimiter(clock, limit);
    limiters.set(name, limiter);
    return limiter;
  }

  return {
    take(operation, timeoutMs, signal) {
      const { name } = operation;
      const limit = name === syncKillSwitch.name && budget !== undefined ? budget : operation.limit;
      const withdrawal = () =>
        withdrawn(signal, false) ?? new NetworkError('the client was closed', 'aborted', NOT_SENT);
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true || closing.signal.aborted) return reject(withdrawal());
        if (limit === null) return resolve();
        const limiter = limiterOf(name, limit);
        const waitMs = Math.round(timeoutMs / 2);
        // A timer that lapses costs more than a limit that is overdrawn. For everything else the limit stands, and what
        // a limiter still holds back although there is room shows that it has stalled.
        const mayOverdraw = name === syncKillSwitch.name || limiter.spare() > 0;
        let waiting = true;
        let ignore: Cancel = () => undefined;
        const withinMs = mayOverdraw ? Math.min(STALLED_MS, waitMs) : timeoutMs;
        const cancel = limiter.acquire(1, withinMs, () => {
          waiting = false;
          ignore();
          resolve();
        });
        // A permit in stock was granted in the call itself, and there is nothing left to listen for.
        if (!waiting) return;
        const stop = (error: Error) => {
          cancel();
          ignore();
          reject(error);
        };
        const cancels = [
          onAbort(signal, () => stop(withdrawal())),
          onAbort(closing.signal, () => stop(withdrawal())),
          mayOverdraw ? () => undefined : clock.after(waitMs, () => stop(noRoom(operation, limit, waitMs))),
        ];
        ignore = () => {
          for (const each of cancels) each();
        };
      });
    },
    close() {
      closing.abort();
      for (const limiter of limiters.values()) limiter.close();
    },
  };
}
