import pRetry from 'p-retry';
import { isRecord, type Redact } from '../util/text.ts';
import type { Failure, Reply } from './classify.ts';
import * as errors from './errors.ts';
import type { Access, ExchangeOptions } from './exchange.ts';
import { type Limits, onAbort, withdrawn } from './limits.ts';
import { type Fields, type Limit, type Operation, syncKillSwitch } from './operations.ts';
import { NONCE_MODES } from './sign.ts';
import { breach, checkNames } from './validate.ts';
import type { WireResult } from './wire.ts';

export interface CallOptions {
  /**
   * Withdraws the call; it then rejects with a NetworkError of reason `aborted`, or with an UnknownOutcomeError where
   * an order or a withdrawal had already left.
   */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for the whole call, else those of the client. Half of them may go by waiting for a turn. */
  readonly timeoutMs?: number | undefined;
  /** Index into the base addresses; the first one where it is not given. */
  readonly base?: number | undefined;
}

const CALL_OPTIONS = ['signal', 'timeoutMs', 'base', 'accessToken'];

export interface Call<T> {
  readonly operation: Operation;
  readonly fields: Fields;
  readonly judge: (result: WireResult, redact: Redact) => Reply<T>;
  readonly bearer?: string | undefined;
  /** What a call that moves money is to be looked up by when its outcome is unknown. */
  readonly lookup?: errors.Lookup;
  /** The part of the time that the first attempt of a reading call may use; all of it where it is not given. */
  readonly firstShare?: number;
}

export interface Answered<T> {
  readonly value: T;
  /** How long the answer took, without the attempts before. */
  readonly latencyMs: number;
}

/** The longest that a timer of the runtime waits. */
const LONGEST_MS = 2_147_483_647;

/** Waits of 0.1 to 0.2, 0.2 to 0.4 and 0.4 to 0.8 s. */
const BACKOFF = { retries: 3, minTimeout: 100, maxTimeout: 1_000, randomize: true } as const;

/** The time of a call in milliseconds. Throws an ArgumentError where no timer can wait for it. */
export function checkTimeout(timeoutMs: number): number {
  if (typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= LONGEST_MS) return timeoutMs;
  throw breach('timeoutMs', timeoutMs, `milliseconds greater than 0, at most ${LONGEST_MS}`);
}

/** Of what may be left out. In the wrong place it may be a secret, which no message shows. */
function checkKind(name: string, value: unknown, kind: 'function' | 'string', allowed: string): void {
  const isAsync = value instanceof Function && value.constructor.name === 'AsyncFunction';
  if (value === undefined || (typeof value === kind && !isAsync)) return;
  const found = isAsync ? 'an async function' : `of type ${typeof value}`;
  throw new errors.ArgumentError(name, `${name} is ${found}; allowed: ${allowed}`);
}

interface CheckedOptions extends ExchangeOptions {
  readonly budget?: Limit | undefined;
  readonly accessToken?: unknown;
}

/** Throws an ArgumentError where a client could not keep to them. `createAccess` checks the base addresses themselves. */
export function checkOptions(options: CheckedOptions): void {
  checkKind('credentials', options.credentials, 'function', 'a function that gives { key, secret } at once');
  checkKind('accessToken', options.accessToken, 'function', 'a function that gives a text at once');
  checkKind('ca', options.ca, 'string', 'certificates in PEM form as a text');
  const { bases, userAgent = '', nonce, connections = 1, budget = syncKillSwitch.limit } = options;
  if (!Array.isArray(bases) || bases.length === 0)
    throw breach('bases', bases, 'a list of one base address or more');
  if (/[^\x20-\x7e]/.test(userAgent))
    throw breach('userAgent', userAgent, 'a text of ASCII characters on one line');
  if (!NONCE_MODES.includes(nonce)) throw breach('nonce', nonce, NONCE_MODES.join(', '));
  const { requests, windowMs } = syncKillSwitch.limit;
  if (!(Number.isInteger(connections) && connections > 0))
    throw breach('connections', connections, 'whole numbers from 1 on');
  // Half of the budget goes at once: of a single request there is no half.
  const isFit = ({ requests: given, windowMs: within }: Limit) =>
    given >= 2 && given <= requests * Math.min(1, within / windowMs);
  if (isRecord(budget) && isFit(budget)) return;
  const allowed = `requests from 2 on in windowMs, not more than ${requests} in ${windowMs / 1000} s`;
  throw breach('budget', budget, allowed);
}

/**
 * The error class of a failed outcome. What could only read has changed nothing. A page may be a gateway's, behind which
 * the exchange has carried the request out: only the API's own error object, which has a code, says that it has not.
 */
function toError(failure: Failure, { effect }: Operation): errors.ApiError {
  const { kind, detail, code, params, fields = {}, status = null, cause } = failure;
  if (kind === 'unauthorised') return new errors.UnauthorisedError(detail, failure.status);
  if (kind === 'refused') return new errors.RefusedError(detail, failure.code, fields, status);
  const isOpen = kind === 'transient' ? failure.maybeApplied : code === undefined;
  const options = { maybeApplied: isOpen && effect !== 'reads', status, cause };
  if (kind === 'nonce') return new errors.NonceError(detail, options);
  if (kind === 'throttled') return new errors.ThrottledError(detail, options);
  if (kind === 'protocol') return new errors.ProtocolError(detail, options);
  const { reason } = failure;
  if (reason === 'auth' && status !== null) return new errors.UnauthorisedError(detail, status, options);
  if (status === 404) return new errors.NotFoundError(detail, options);
  if (params !== undefined) return new errors.PublicRefusedError(detail, params, status);
  // With any other status than those of a refusal it may be a proxy's, and its code says nothing.
  if (code !== undefined && !isOpen) return new errors.RefusedError(detail, code, fields, status);
  if (reason === 'timeout') return new errors.TimeoutError(detail, options);
  if (reason === 'http_5xx') return new errors.ServerError(detail, options);
  if (reason === 'parse' || reason === 'validation') return new errors.ProtocolError(detail, options);
  if (reason === 'auth') return new errors.CredentialError(detail, options);
  return new errors.NetworkError(detail, reason, options);
}

function attemptOnce<T>(
  { session, clock }: Access,
  { operation, fields, judge, bearer }: Call<T>,
  where: { readonly base: string; readonly fresh: boolean },
  untilMs: number,
  signal: AbortSignal | undefined,
): Promise<Answered<T>> {
  return new Promise((resolve, reject) => {
    const sentMs = clock.now().monoMs;
    const delivery = { ...where, mayWrite: () => signal?.aborted !== true, bearer };
    const cancel = session.call(operation, fields, delivery, judge, (reply) => {
      cancelDeadline();
      ignore();
      if (reply.kind === 'answered')
        return resolve({ value: reply.value, latencyMs: clock.now().monoMs - sentMs });
      const error = toError(reply, operation);
      const gaveUp =
        error instanceof errors.TimeoutError ||
        (error instanceof errors.NetworkError && error.reason === 'aborted');
      return reject((gaveUp ? withdrawn(signal, error.maybeApplied) : null) ?? error);
    });
    const cancelDeadline = clock.after(untilMs - sentMs, cancel);
    const ignore = onAbort(signal, cancel);
  });
}

/** Whether a call that moves no money may be sent again: after a stale nonce, which changes nothing, or where it only reads. */
function mayRepeat({ effect }: Operation, error: Error): boolean {
  const isLost = error instanceof errors.NetworkError && error.reason === 'network';
  const isOpen = isLost || error instanceof errors.TimeoutError || error instanceof errors.ServerError;
  return error instanceof errors.NonceError || (effect === 'reads' && isOpen);
}

/** Makes calls over one access, each in turn of its limit. `defaultMs`: the time of a call that names none. */
export function createCaller(access: Access, limits: Limits, defaultMs: number) {
  const { clock, origins } = access;

  return async <T>(call: Call<T>, options: CallOptions): Promise<Answered<T>> => {
    const { operation, lookup = {}, firstShare = 1 } = call;
    checkNames('a call', 'options', options, CALL_OPTIONS);
    const { signal, base: place = 0 } = options;
    const base = typeof place === 'number' ? origins[place] : undefined;
    if (base === undefined)
      throw breach('base', place, `the place of a base address in the list, 0 to ${origins.length - 1}`);
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw breach('signal', signal, 'an AbortSignal, or left out');
    const timeoutMs = checkTimeout(options.timeoutMs ?? defaultMs);
    const begunMs = clock.now().monoMs;
    const endMs = begunMs + timeoutMs;

    let lastError: unknown = null;
    const attempt = async (number: number) => {
      const waitMs = (endMs - clock.now().monoMs) / 2;
      const untilMs = number === 1 ? begunMs + timeoutMs * firstShare : endMs;
      const job = () => attemptOnce(access, call, { base, fresh: number > 1 }, untilMs, signal);
      try {
        return await limits.run(operation, { waitMs, signal }, job);
      } catch (error) {
        // A repetition that had no turn says less than what it was to repeat.
        const isUnsent = error instanceof errors.ThrottledError && error.status === null;
        lastError = isUnsent && lastError !== null ? lastError : error;
        throw lastError;
      }
    };

    try {
      // Once, whatever comes back: the document does not show how a rate limit is told, so that the answer of a stale
      // nonce may be one.
      if (operation.effect === 'moves-money') return await attempt(1);
      return await pRetry(attempt, {
        ...BACKOFF,
        // A call that has changed something is told as done, also where it was withdrawn at the same time.
        ...(operation.effect === 'reads' && signal !== undefined && { signal }),
        shouldRetry: ({ error, retryDelay }) =>
          mayRepeat(operation, error) && clock.now().monoMs + retryDelay < endMs,
      });
    } catch (error) {
      if (!(error instanceof errors.ApiError)) throw withdrawn(signal, false) ?? error;
      const isUnknown = operation.effect === 'moves-money' && error.maybeApplied;
      throw isUnknown ? new errors.UnknownOutcomeError(operation.name, lookup, error) : error;
    }
  };
}
