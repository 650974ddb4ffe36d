import type { ExchangeRequest } from '../simulator/simulated-exchange.ts';

/** One request on the simulated wire, as faults and judges see it. */
export interface Sent {
  readonly daemon: number;
  readonly life: number;
  /** Index into the base addresses. */
  readonly base: number;
  /** Null for a ping. */
  readonly market: string | null;
  /** What it asks for; null for a ping. */
  readonly order: { readonly nonce: string; readonly timeoutSeconds: number | null } | null;
  readonly request: ExchangeRequest;
  /** Counts the requests of one life of a daemon in the order of signing. */
  readonly number: number;
  /** Counts those of its market, or its pings: what draws depend on. */
  readonly nth: number;
}
