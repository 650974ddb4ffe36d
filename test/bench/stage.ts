import type { Book } from './book.ts';
import type { Rig } from './rig.ts';

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
