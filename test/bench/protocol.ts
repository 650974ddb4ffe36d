/** What the bench and the exchange's process say to each other. */
export interface ExchangeOptions {
  readonly answerMs: number;
  /** So many markets, the first ones, never get an answer that helps: every other one none at all, the others a 500. */
  readonly sick: number;
  readonly certFile: string;
  readonly keyFile: string;
}

/** `count` starts counting anew; `forget` drops the timers as well, for the next subject. */
export type Ask = 'count' | 'forget' | 'read';

/** What the exchange saw since it began to count. Moments in Unix milliseconds. */
export interface Seen {
  readonly renewals: number;
  /** Timers that fired: renewed too late, or not at all so far. */
  readonly lapses: number;
  /** The least part of the timeout that was left when a renewal arrived: 1 where none was renewed twice. */
  readonly leastSlack: number;
  readonly armed: number;
  readonly firstArmedAt: number;
}

/** `B00042_USDT` */
export const marketName = (index: number) => `B${String(index).padStart(5, '0')}_USDT`;
export const marketNames = (markets: number) => Array.from({ length: markets }, (_, at) => marketName(at));

/** Unix milliseconds with fractions, the same in every process of the host. */
export const nowMs = () => performance.timeOrigin + performance.now();
