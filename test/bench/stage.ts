import type { Book } from './book.ts';
import type { Rig } from './rig.ts';

/** What everybody keeps to where nothing else is said. */
export const TIMEOUT_SECONDS = 60;
export const PERIOD_MS = 10_000;
export const CONNECTIONS = 64;

/** A handful of markets, as most have: nonces that rise, requests one after the other. */
export const SMALL_CONFIG = {
  exchange: { nonce: 'increasing' },
  defaults: { renewEverySeconds: PERIOD_MS / 1000 },
} as const;

/** What a stage of the bench is given. */
export interface Stage {
  readonly rig: Rig;
  readonly book: Book;
  readonly rounds: number;
  /** A look instead of a measurement: windows are a third as long. */
  readonly quick: boolean;
  /** Of the long run with 10,000 markets. */
  readonly minutes: number;
  readonly say: (line: string) => void;
}

/** Shorter for a look, as measured otherwise. */
export function windowOf({ quick }: Stage, seconds: number): number {
  return quick ? Math.max(2, seconds / 3) : seconds;
}
