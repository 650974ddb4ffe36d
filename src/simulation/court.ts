import type { EvidenceBook } from './evidence-book.ts';
import type { Incarnation } from './incarnation.ts';
import type { IntentBook } from './intent-book.ts';
import type { Plan } from './plan.ts';
import type { Truth } from './truth.ts';

/** Numbers and names of the invariants in the design, section 1. */
export const INVARIANTS = [
  '1 belief',
  '2 false lapse',
  '3 bounded kill',
  '4 posthumous renewal',
  '5 delete on purpose',
  '6 nothing after delete',
  '7 unconfirmed delete',
  '8 lapses',
  '9 nonces',
  '10 rate',
  '11 progress',
  '12 isolation',
] as const;
export type Invariant = (typeof INVARIANTS)[number];

/** One broken promise, at a true moment; or an error that would have ended the process. */
export interface Violation {
  readonly invariant: Invariant | 'uncaught error';
  readonly atMs: number;
  readonly text: string;
}

/** What every judge of a run may look at, on both sides of the wire. */
export interface Court {
  readonly plan: Plan;
  readonly nowMs: () => number;
  /** The exchange's clock, Unix milliseconds. */
  readonly serverNowMs: () => number;
  /** In the order of the plan's markets. */
  readonly truths: readonly Truth[];
  readonly truthOf: (market: string) => Truth | undefined;
  readonly evidence: EvidenceBook;
  readonly intents: IntentBook;
  readonly running: ReadonlyMap<number, Incarnation>;
  readonly blame: (invariant: Invariant, text: string) => void;
}

/** Clocks drift, events of one instant have an order: this much is not a violation. */
export const TOLERANCE_MS = 20;
