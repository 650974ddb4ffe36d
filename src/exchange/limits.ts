import { setMaxListeners } from 'node:events';
import Bottleneck from 'bottleneck';
import type { Cancel, Clock } from '../ports.ts';
import { NetworkError, ThrottledError } from './errors.ts';
import { type Limit, type Operation, syncKillSwitch } from './operations.ts';
import type { NonceMode } from './sign.ts';

export interface LimitsOptions {
  readonly clock: Clock;
  readonly nonce: NonceMode;
  /** Requests that may be under way at a time: of all operations, or with rising nonces of those that are not signed. */
  readonly concurrent: number;
  /** The part of the kill-switch's limit that may be used; the whole where it is not given. */
  readonly budget?: Limit | undefined;
}

/** The error of a call whose signal has fired; null where it has not. */
export function withdrawn(signal: AbortSignal | undefined, maybeApplied: boolean): NetworkError | null {
  if (signal?.aborted !== true) return null;
  const cause: unknown = signal.reason;
  return new NetworkError('the call was withdrawn by its signal', 'aborted', { maybeApplied, cause });
}

export function onAbort(signal: AbortSignal | undefined, cancel: Cancel): Cancel {
  if (signal === undefined) return () => undefined;
  // One signal may withdraw a thousand calls, and each listens to it: no leak that Node would have to warn of.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', cancel, { once: true });
  return () => signal.removeEventListener('abort', cancel);
}

/** Bottleneck looks after its reservoir in steps of this. */
const STEP_MS = 250;

/**
 * So many tokens of a limit may be held by calls that wait for their lane; a quarter of what goes at once where that is
 * less. One at a time would cost more than half of the calls a second.
 */
const MOST_HELD = 4;

/**
 * Half of the limit at once, and the rest, but for what may be held meanwhile, spread over the window: no sliding window
 * sees more than the limit, which a reservoir that is filled once a window would let by twice.
 */
function reservoirOf({ requests, windowMs }: Limit) {
  const half = Math.floor(requests / 2);
  const maxConcurrent = Math.min(MOST_HELD, Math.ceil(half / 4));
  const rest = Math.max(1, requests - half - maxConcurrent);
  const reservoirIncreaseInterval = Math.ceil(windowMs / rest / STEP_MS) * STEP_MS;
  const increases = Math.ceil(windowMs / reservoirIncreaseInterval);
  return {
    maxConcurrent,
    reservoir: half,
    reservoirIncreaseMaximum: half,
    reservoirIncreaseInterval,
    reservoirIncreaseAmount: Math.max(1, Math.floor(rest / increases)),
  };
}

/** A step back of the wall clock by more than this is answered with new limiters. */
const STEP_BACK_MS = 1_000;

/**
 * Each operation has a gate, which gives a token to each call, and a lane, in which calls are under way. A call leaves
 * its gate when it begins in its lane: what waits behind a slow one gathers no tokens. All are made anew after a step
 * back of the wall clock.
 */
function createLimiters({ clock, nonce, concurrent }: LimitsOptions) {
  const gates = new Map<string, Bottleneck>();
  const createLanes = () => {
    const many = new Bottleneck({ maxConcurrent: concurrent });
    // A nonce that arrives after a greater one is stale: signed requests go one after the other.
    return { many, signed: nonce === 'window' ? many : new Bottleneck({ maxConcurrent: 1 }) };
  };
  let lanes = createLanes();
  /** By how much the wall clock has been ahead of the monotonic one at most, since these limiters were made. */
  let furthestMs = Number.NEGATIVE_INFINITY;

  function disconnect(): void {
    for (const gate of gates.values()) void gate.disconnect();
  }
  return {
    of({ name, authentication }: Operation, limit: Limit | null) {
      const { monoMs, wallMs } = clock.now();
      const aheadMs = wallMs - monoMs;
      if (aheadMs < furthestMs - STEP_BACK_MS) {
        disconnect();
        gates.clear();
        lanes = createLanes();
        furthestMs = aheadMs;
      }
      furthestMs = Math.max(furthestMs, aheadMs);
      const gate = gates.get(name) ?? new Bottleneck(limit === null ? {} : reservoirOf(limit));
      gates.set(name, gate);
      return { gate, lane: authentication === 'signed' ? lanes.signed : lanes.many };
    },
    disconnect,
  };
}

export type Limits = ReturnType<typeof createLimits>;

/**
 * The documented limits of all operations, and the order of rising nonces. Bottleneck goes by the wall clock and after a
 * step back starts nothing until the old time comes round: so a call waits with a deadline, and after such a step the
 * limiters are made anew; what waits at the old ones begins there or not at all.
 */
export function createLimits(options: LimitsOptions) {
  const { clock, budget } = options;
  const limiters = createLimiters(options);
  const waiting = new Set<(error: Error) => void>();
  let closed: NetworkError | null = null;

  return {
    /**
     * Runs `job` when the limit of the operation and its lane have room. Rejects with a ThrottledError where that takes
     * longer than `waitMs`, and with a NetworkError of reason `aborted` where the call is withdrawn or the client closed
     * before. The job has not begun then.
     */
    run<T>(
      operation: Operation,
      { waitMs, signal }: { waitMs: number; signal: AbortSignal | undefined },
      job: () => Promise<T>,
    ): Promise<T> {
      return new Promise((resolve, reject) => {
        const refused = withdrawn(signal, false) ?? closed;
        if (refused !== null) return reject(refused);
        const isTimer = operation.name === syncKillSwitch.name;
        const limit = (isTimer ? budget : undefined) ?? operation.limit;
        const { gate, lane } = limiters.of(operation, limit);
        const leave = (): boolean => {
          cancelWait();
          ignore();
          return waiting.delete(refuse);
        };
        const refuse = (error: Error) => {
          if (leave()) reject(error);
        };
        const late = () => noTurn(operation.name, limit, waitMs);
        const ignore = onAbort(signal, () => refuse(withdrawn(signal, false) ?? late()));
        const cancelWait = clock.after(waitMs, () => refuse(late()));
        waiting.add(refuse);
        const priority = isTimer ? 0 : 5;
        const enter = () =>
          new Promise<boolean>((entered) => {
            const begin = async () => {
              const begins = leave();
              entered(begins);
              if (begins) await job().then(resolve, reject);
            };
            lane.schedule({ priority }, begin).catch(refuse);
          });
        const pass = async () => {
          // Whoever has given up meanwhile sends nothing, and gives its token back.
          const begun = waiting.has(refuse) && (await enter());
          if (!begun && limit !== null) await gate.incrementReservoir(1);
        };
        gate.schedule({ priority }, pass).catch(refuse);
      });
    },
    close(): void {
      closed = new NetworkError('the client was closed', 'aborted');
      for (const refuse of waiting) refuse(closed);
      limiters.disconnect();
    },
  };
}

function noTurn(name: string, limit: Limit | null, waitMs: number): ThrottledError {
  const limited =
    limit === null ? '' : `, with a limit of ${limit.requests} requests in ${limit.windowMs / 1000} s`;
  return new ThrottledError(`not sent: ${name}${limited}, had no turn within ${Math.round(waitMs)} ms`);
}
