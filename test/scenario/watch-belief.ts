import { type CoreState, openWrites, slackMs } from '../../src/core/state.ts';
import type { Book } from './book.ts';

/** Events of one instant have an order: this much is not a wrong belief. */
const TOLERANCE_MS = 5;
const MOST_IN_FLIGHT = 3;
/** Of many markets only so many are looked at each time, in turns. */
const LOOKED_AT = 20;

/**
 * What is wrong with what the core believes now, measured by what is true at the exchange. Design, invariant 1. `turn`
 * counts the calls.
 */
export function watchBelief(state: Readonly<CoreState>, book: Book, nowMs: number, turn: number): string[] {
  const wrong: string[] = [];
  const groups = Math.ceil(state.markets.length / LOOKED_AT);
  const from = (turn % groups) * LOOKED_AT;
  for (const market of state.markets.slice(from, from + LOOKED_AT)) {
    const name = market.settings.market;
    const firesMs = book.timers.get(name)?.firesMs ?? null;
    const slack = slackMs(state, market);
    if (slack > TOLERANCE_MS && (firesMs === null || firesMs < nowMs + slack - TOLERANCE_MS)) {
      const truth = firesMs === null ? 'nothing is armed' : `it fires in ${firesMs - nowMs} ms`;
      wrong.push(`${nowMs} ms: ${name} is believed to be armed for ${slack} ms more, ${truth}`);
    }
    const { notAfterMs } = market.belief;
    const latestMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs;
    if (firesMs !== null && state.phase.kind !== 'stopped' && latestMs < firesMs - nowMs - TOLERANCE_MS) {
      wrong.push(
        `${nowMs} ms: ${name} is believed to fire within ${latestMs} ms, it fires in ${firesMs - nowMs} ms`,
      );
    }
    if (openWrites(market).length > MOST_IN_FLIGHT) {
      wrong.push(`${nowMs} ms: ${name} has ${openWrites(market).length} requests in flight`);
    }
  }
  return wrong;
}
