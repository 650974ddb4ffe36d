import pRetry from 'p-retry';
import { ORDER_TYPES, type OrderType, type ServerTimer } from '../core/outcome.ts';
import type { Cancel, Clock, Exchange } from '../ports.ts';
import { ArgumentError, errorOfReason, NetworkError, NonceError, toError } from './errors.ts';
import { createExchange, type ExchangeOptions } from './exchange.ts';

export interface KillSwitchRequest {
  /** `BASE_QUOTE` in capitals. */
  readonly market: string;
  /** Whole seconds 5 to 600, or null to delete the timer. */
  readonly timeoutSeconds: number | null;
  /** At least one order type; null or left out means all. */
  readonly types?: readonly OrderType[] | null;
}

export interface CallOptions {
  /** Withdraws the call; it then rejects with a NetworkError of reason `aborted`. */
  readonly signal?: AbortSignal;
  /** Milliseconds for the whole call; 10 000 where it is not given. */
  readonly timeoutMs?: number;
  /** Index into the base addresses; the first one where it is not given. */
  readonly base?: number;
}

/** The exchange with promises. Everything rejects with an ApiError of `errors.ts`, or an ArgumentError before sending. */
export interface Client {
  /** Arms or updates the timer of a market and gives it back; deletes it for a null timeout and gives back null. */
  syncKillSwitch(request: KillSwitchRequest, options?: CallOptions): Promise<ServerTimer | null>;
  /** Milliseconds that the answer took. */
  ping(options?: CallOptions): Promise<number>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 10_000;
/** How long a call waits for its turn at most. A limiter that has stalled must not hold it up. */
const TURN_MS = 1_000;
/** A stale nonce is repeated at once with a new one: 1 s, 1 min and 1 h ahead if need be. */
const NONCE_RETRIES = 3;
const NOT_SENT = { maybeApplied: false } as const;
const MARKET = /^[A-Z0-9]+_[A-Z0-9]+$/;

function checkArguments({ market, timeoutSeconds, types }: KillSwitchRequest): void {
  if (typeof market !== 'string' || !MARKET.test(market))
    throw new ArgumentError('market', `market is ${JSON.stringify(market)}; allowed: BASE_QUOTE in capitals`);
  const seconds = timeoutSeconds;
  if (seconds !== null && !(Number.isInteger(seconds) && seconds >= 5 && seconds <= 600)) {
    throw new ArgumentError(
      'timeoutSeconds',
      `timeoutSeconds is ${JSON.stringify(seconds)}; allowed: whole seconds 5 to 600, or null to delete the timer`,
    );
  }
  if (types === null || types === undefined) return;
  const allowed = `allowed: ${ORDER_TYPES.join(', ')}; null for all`;
  if (!Array.isArray(types) || types.length === 0)
    throw new ArgumentError('types', `types is ${JSON.stringify(types)}; ${allowed}`);
  for (const [place, type] of types.entries()) {
    if (!ORDER_TYPES.includes(type))
      throw new ArgumentError('types', `types[${place}] is ${JSON.stringify(type)}; ${allowed}`);
  }
}

function timeoutOf({ timeoutMs = TIMEOUT_MS }: CallOptions): number {
  if (Number.isFinite(timeoutMs) && timeoutMs > 0) return timeoutMs;
  throw new ArgumentError('timeoutMs', `timeoutMs is ${timeoutMs}; allowed: milliseconds greater than 0`);
}

function withdrawn(signal: AbortSignal | undefined, maybeApplied: boolean): NetworkError | null {
  if (signal?.aborted !== true) return null;
  return new NetworkError('the call was withdrawn by its signal', 'aborted', {
    maybeApplied,
    cause: signal.reason,
  });
}

/** Calls `cancel` when the signal fires. The returned function ends that. */
function onAbort(signal: AbortSignal | undefined, cancel: Cancel): Cancel {
  signal?.addEventListener('abort', cancel, { once: true });
  return () => signal?.removeEventListener('abort', cancel);
}

/** Waits for a permit, at most a second; rejects where the call is withdrawn or the client closed before. */
function takeTurn(
  exchange: Exchange,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  closing: AbortSignal,
): Promise<void> {
  const withdrawal = () =>
    withdrawn(signal, false) ?? new NetworkError('the client was closed', 'aborted', NOT_SENT);
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true || closing.aborted) return reject(withdrawal());
    let waiting = true;
    let ignore: Cancel = () => undefined;
    const cancel = exchange.acquire(1, Math.min(TURN_MS, timeoutMs / 2), () => {
      waiting = false;
      ignore();
      resolve();
    });
    // A permit in stock was granted in the call itself, and there is nothing left to listen for.
    if (!waiting) return;
    const stop = () => {
      cancel();
      ignore();
      reject(withdrawal());
    };
    const cancels = [onAbort(signal, stop), onAbort(closing, stop)];
    ignore = () => {
      for (const each of cancels) each();
    };
  });
}

/** One request, given up at `untilMs` of monotonic time. */
function syncOnce(
  exchange: Exchange,
  clock: Clock,
  untilMs: number,
  request: KillSwitchRequest,
  { signal, base = 0 }: CallOptions,
): Promise<ServerTimer | null> {
  return new Promise((resolve, reject) => {
    const mayWrite = () => signal?.aborted !== true;
    const types = request.types ?? null;
    const cancel = exchange.sync({ ...request, types, base, fresh: false, mayWrite }, (outcome) => {
      cancelDeadline();
      ignore();
      if (outcome.kind === 'applied') return resolve(outcome.timer);
      if (outcome.kind === 'deleted') return resolve(null);
      const gaveUp = outcome.kind === 'transient' && ['timeout', 'aborted'].includes(outcome.reason);
      const withdrawal = gaveUp ? withdrawn(signal, outcome.maybeApplied) : null;
      return reject(withdrawal ?? toError(outcome));
    });
    const cancelDeadline = clock.after(untilMs - clock.now().monoMs, cancel);
    const ignore = onAbort(signal, cancel);
  });
}

function pingOnce(exchange: Exchange, timeoutMs: number, { signal, base = 0 }: CallOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const early = withdrawn(signal, false);
    if (early !== null) return reject(early);
    const cancel = exchange.ping(base, timeoutMs, (outcome) => {
      ignore();
      if (outcome.ok) return resolve(outcome.latencyMs);
      const { reason, detail } = outcome;
      return reject(withdrawn(signal, false) ?? errorOfReason(reason, detail, NOT_SENT));
    });
    const ignore = onAbort(signal, cancel);
  });
}

/** The client of the exchange for programs; the daemon uses `createExchange`. Throws where a base address is not allowed. */
export function createClient(options: ExchangeOptions): Client {
  const { clock } = options;
  const exchange = createExchange(options);
  const closing = new AbortController();

  return {
    async syncKillSwitch(request, given = {}) {
      checkArguments(request);
      const timeoutMs = timeoutOf(given);
      const untilMs = clock.now().monoMs + timeoutMs;
      const attempt = async () => {
        await takeTurn(exchange, timeoutMs, given.signal, closing.signal);
        return syncOnce(exchange, clock, untilMs, request, given);
      };
      return pRetry(attempt, {
        retries: NONCE_RETRIES,
        factor: 1,
        minTimeout: 0,
        maxTimeout: 0,
        maxRetryTime: Number.POSITIVE_INFINITY,
        randomize: false,
        unref: true,
        onFailedAttempt: () => undefined,
        shouldConsumeRetry: () => true,
        shouldRetry: ({ error }) => error instanceof NonceError,
      });
    },
    ping: async (given = {}) => pingOnce(exchange, timeoutOf(given), given),
    async close() {
      closing.abort();
      await exchange.close();
    },
  };
}
