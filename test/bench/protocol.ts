/** What the bench and the exchange's process say to each other. */

/** How the exchange fails while it does: for everything it is asked, pings included. */
export const FAULTS = ['hang', 'reset', '500', '429 stale nonce', '429 page'] as const;
export type Fault = (typeof FAULTS)[number];

export interface ExchangeOptions {
  /** Milliseconds that every answer is held back: the round trip. */
  readonly roundTripMs: number;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly secret: string;
}

/** Starts counting anew; `forget` drops the timers as well, for the next subject. */
export interface Ask {
  readonly id: number;
  readonly ask: 'count' | 'forget' | 'read' | 'fail' | 'work';
  readonly fault?: Fault;
  readonly roundTripMs?: number;
  /** For `read`: the period that gaps are judged by; 0 judges none. */
  readonly periodMs?: number;
}

/** What the exchange saw since it began to count. Moments in Unix milliseconds. */
export interface Seen {
  readonly renewals: number;
  readonly deletes: number;
  readonly failed: number;
  /** Requests whose signature was looked at and found wrong. */
  readonly badSignatures: number;
  /** Nonces that were not above the one before; harmless in a nonce window. */
  readonly staleNonces: number;
  readonly connections: number;
  /** Timers that fired: renewed too late, or not at all so far. */
  readonly lapses: number;
  /** The least part of the timeout that was left when a renewal arrived; null where none was renewed twice. */
  readonly leastSlack: number | null;
  /** The longest time between two accepted renewals of one market. */
  readonly longestGapMs: number;
  readonly armed: number;
  readonly firstArmedAt: number;
  readonly lastFirstArmedAt: number;
  readonly lastRenewalAt: number;
  /** When the market was renewed that has waited longest since; 0 where none is armed. */
  readonly stalestRenewedAt: number;
  readonly lastDeleteAt: number;
  /** Most requests of the private API in any 10 s, carried out or not, since the timers were dropped. */
  readonly mostInWindow: number;
  /** Mean milliseconds between the arrival of a request and its answer. */
  readonly meanHoldMs: number;
  readonly heldMs: number;
  /** How much more than a period lay between two accepted renewals of a market; null where too few came. */
  readonly beyondPeriod: Lateness | null;
}

/** Milliseconds. */
export interface Lateness {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface Answer {
  readonly id: number;
  readonly seen: Seen;
}

/** `B00042_USDT` */
export function marketName(index: number): string {
  return `B${String(index).padStart(5, '0')}_USDT`;
}

/** Unix milliseconds with fractions, the same in every process of the host. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
