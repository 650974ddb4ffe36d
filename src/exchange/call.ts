import type { Redact } from '../util/redact.ts';
import {
  ApiError,
  ArgumentError,
  type Lookup,
  NetworkError,
  NonceError,
  TimeoutError,
  toError,
  UnknownOutcomeError,
} from './errors.ts';
import type { Access } from './exchange.ts';
import type { Operation } from './operations.ts';
import { repeat } from './repeat.ts';
import type { Reply } from './reply.ts';
import { onAbort, type Turns, withdrawn } from './turns.ts';
import type { WireResult } from './wire.ts';

export interface CallOptions {
  /**
   * Withdraws the call; it then rejects with a NetworkError of reason `aborted`, or with an UnknownOutcomeError where
   * an order or a withdrawal had already left.
   */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call; 10 000 where it is not given. Half of them may go by waiting for the limit. */
  readonly timeoutMs?: number | undefined;
  /** Index into the base addresses; the first one where it is not given. */
  readonly base?: number | undefined;
}

/** One call: what to send, and how to judge what comes back. */
export interface Call<Arguments, T> {
  readonly operation: Operation<Arguments>;
  readonly given: Arguments;
  readonly judge: (result: WireResult, redact: Redact) => Reply<T>;
  readonly bearer?: string | undefined;
  /** What a call that moves money is to be looked up by when its outcome is unknown. */
  readonly lookup?: Lookup;
  /** The part of the time that the first attempt of a reading call may use; all of it where it is not given. */
  readonly firstShare?: number;
}

export interface Answered<T> {
  readonly value: T;
  /** How long the answer took, without the attempts before. */
  readonly latencyMs: number;
}

/** Makes calls one by one, each with a deadline. */
export type Caller = <Arguments, T>(call: Call<Arguments, T>, options: CallOptions) => Promise<Answered<T>>;

const TIMEOUT_MS = 10_000;
/** The longest that a timer of the runtime waits. */
const LONGEST_MS = 2_147_483_647;
/** A stale nonce is repeated at once with a new one: 1 s, 1 min and 1 h ahead if need be. */
const NONCE_RETRIES = 3;
/** A reading call whose connection was lost is repeated once: the server may have closed it for being idle. */
const LOSS_RETRIES = 1;

function timeoutOf({ timeoutMs = TIMEOUT_MS }: CallOptions): number {
  if (Number.isFinite(timeoutMs) && timeoutMs > 0 && timeoutMs <= LONGEST_MS) return timeoutMs;
  const allowed = `allowed: milliseconds greater than 0, at most ${LONGEST_MS}`;
  throw new ArgumentError('timeoutMs', `timeoutMs is ${String(timeoutMs)}; ${allowed}`);
}

function originOf(origins: readonly string[], { base = 0 }: CallOptions): string {
  const origin = origins[base];
  if (origin !== undefined) return origin;
  throw new ArgumentError(
    'base',
    `base is ${String(base)}; allowed: whole numbers 0 to ${origins.length - 1}`,
  );
}

/** One attempt of a call. */
interface Attempt {
  readonly origin: string;
  /** Of monotonic time; the attempt is given up then. */
  readonly untilMs: number;
  readonly fresh: boolean;
  readonly signal: AbortSignal | undefined;
}

function attemptOnce<Arguments, T>(
  { session, clock }: Access,
  { operation, given, judge, bearer }: Call<Arguments, T>,
  { origin, untilMs, fresh, signal }: Attempt,
): Promise<Answered<T>> {
  return new Promise((resolve, reject) => {
    const sentMs = clock.now().monoMs;
    const mayWrite = () => signal?.aborted !== true;
    const cancel = session.call(
      operation,
      given,
      { base: origin, fresh, mayWrite, bearer },
      judge,
      (reply) => {
        cancelDeadline();
        ignore();
        if (reply.kind === 'answered')
          return resolve({ value: reply.value, latencyMs: clock.now().monoMs - sentMs });
        const error = toError(reply);
        const gaveUp =
          error instanceof TimeoutError || (error instanceof NetworkError && error.reason === 'aborted');
        return reject((gaveUp ? withdrawn(signal, error.maybeApplied) : null) ?? error);
      },
    );
    const cancelDeadline = clock.after(untilMs - sentMs, cancel);
    const ignore = onAbort(signal, cancel);
  });
}

/** True where the same request over a new connection may well succeed. */
function isLoss(error: Error): boolean {
  return error instanceof TimeoutError || (error instanceof NetworkError && error.reason === 'network');
}

/**
 * Calls over one access, in turn of their limits. A stale nonce is certain to have changed nothing and is repeated with
 * a new one; what else is repeated only reads.
 */
export function createCaller(access: Access, turns: Turns): Caller {
  const { clock, origins } = access;

  return async (call, options) => {
    const { operation, lookup = {}, firstShare = 1 } = call;
    const { signal } = options;
    const origin = originOf(origins, options);
    const timeoutMs = timeoutOf(options);
    const begunMs = clock.now().monoMs;
    const endMs = begunMs + timeoutMs;
    const lossesAllowed = operation.effect === 'reads' ? LOSS_RETRIES : 0;
    let losses = 0;
    let staleNonces = 0;

    const attempt = async () => {
      await turns.take(operation, endMs - clock.now().monoMs, signal);
      const untilMs = losses < lossesAllowed ? begunMs + timeoutMs * firstShare : endMs;
      return attemptOnce(access, call, { origin, untilMs, fresh: losses > 0, signal });
    };
    const mayRepeat = (error: Error): boolean => {
      if (clock.now().monoMs >= endMs) return false;
      if (error instanceof NonceError) {
        staleNonces += 1;
        return staleNonces <= NONCE_RETRIES;
      }
      if (!isLoss(error)) return false;
      losses += 1;
      return losses <= lossesAllowed;
    };

    try {
      return await repeat(attempt, { retries: NONCE_RETRIES + LOSS_RETRIES, mayRepeat });
    } catch (error) {
      const movedMoney =
        operation.effect === 'moves-money' && error instanceof ApiError && error.maybeApplied;
      throw movedMoney ? new UnknownOutcomeError(operation.name, lookup, error) : error;
    }
  };
}
