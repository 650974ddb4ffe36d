import type { Cancel } from '../ports.ts';
import type { Timeline } from '../simulator/virtual-clock.ts';

/**
 * How an outage shows. `refused`: every request is turned down at once, as a gateway does with its 503. `black hole`:
 * requests vanish and nothing ever answers them; none of them arrives late.
 */
export const OUTAGE_KINDS = ['refused', 'black hole'] as const;
export type OutageKind = (typeof OUTAGE_KINDS)[number];

/** Requests that arrive at the exchange from `fromMs` until just before `untilMs` come to nothing. True milliseconds. */
export interface Outage {
  readonly kind: OutageKind;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** `unwritten`: it was no longer allowed to leave. Stamps are whole seconds of the exchange's clock. */
export type Reply =
  | { readonly kind: 'applied'; readonly startTime: number; readonly cancellationTime: number }
  | { readonly kind: 'read' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'unwritten' };

export interface Letter {
  /** A `read` changes nothing: a ping, or a look at the lease. */
  readonly what: 'renew' | 'read';
  /** Needs a new connection first: one round trip more, through the same outage. */
  readonly fresh: boolean;
  /** Asked right before the first byte leaves. */
  readonly mayWrite?: () => boolean;
}

/** A simulated exchange with one kill-switch timer, and the wire to it. */
export interface SingleTimer {
  /** Sends; `settled` is called at most once, never synchronously, and not at all once the sender cancelled. */
  send(letter: Letter, settled: (reply: Reply) => void): Cancel;
  /** True milliseconds of the next firing; null before the first renewal. */
  firesAtMs(): number | null;
  /** True moments at which renewals were applied, in order. */
  readonly appliedMs: readonly number[];
  /** Last moment at which a renewal came that would have been in time, had there been no outage any more. */
  lastChanceMs(): number;
}

/**
 * One timer at an exchange that counts whole seconds and rounds them down: a renewal at 12.9 s of its clock makes a
 * timer that ends at 12 s + T. `clockMs` is how far its clock is ahead of true time. Each way takes half the round trip.
 */
export function createSingleTimer(options: {
  readonly timeline: Timeline;
  readonly timeoutMs: number;
  readonly roundTripMs: number;
  readonly clockMs: number;
  readonly outage: Outage | null;
}): SingleTimer {
  const { timeline, timeoutMs, roundTripMs, clockMs, outage } = options;
  const appliedMs: number[] = [];
  let firesAtMs: number | null = null;
  let lastChanceMs = Number.NEGATIVE_INFINITY;
  const later = (delayMs: number, run: () => void) => timeline.at(timeline.nowMs() + delayMs, run);

  function apply(): Reply {
    const nowMs = timeline.nowMs();
    const startTime = Math.floor((nowMs + clockMs) / 1000);
    const cancellationTime = startTime + timeoutMs / 1000;
    // What had fired stays fired: a renewal after that makes a new timer and saves nothing.
    if (firesAtMs === null || nowMs < firesAtMs) {
      appliedMs.push(nowMs);
      firesAtMs = cancellationTime * 1000 - clockMs;
    }
    return { kind: 'applied', startTime, cancellationTime };
  }

  function send({ what, fresh, mayWrite }: Letter, settled: (reply: Reply) => void): Cancel {
    let cancelled = false;
    const answer = (reply: Reply) => {
      if (!cancelled) settled(reply);
    };
    const arrive = (applyInMs: number, onArrival: () => void) =>
      later(roundTripMs / 2, () => {
        const nowMs = timeline.nowMs();
        const inTime = firesAtMs === null || nowMs + applyInMs < firesAtMs;
        if (what === 'renew' && inTime) lastChanceMs = nowMs;
        if (outage === null || nowMs < outage.fromMs || nowMs >= outage.untilMs) onArrival();
        else if (outage.kind === 'refused') later(roundTripMs / 2, () => answer({ kind: 'refused' }));
      });
    const write = () => {
      if (cancelled) return;
      if (mayWrite?.() === false) {
        answer({ kind: 'unwritten' });
        return;
      }
      arrive(0, () => {
        const reply: Reply = what === 'renew' ? apply() : { kind: 'read' };
        later(roundTripMs / 2, () => answer(reply));
      });
    };
    if (fresh) arrive(roundTripMs, () => later(roundTripMs / 2, write));
    else write();
    return () => {
      cancelled = true;
    };
  }

  return { send, firesAtMs: () => firesAtMs, appliedMs, lastChanceMs: () => lastChanceMs };
}
