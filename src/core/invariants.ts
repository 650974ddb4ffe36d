import { roomInWindow } from './rate.ts';
import { type Attempt, type CoreState, type MarketState, slackMs } from './state.ts';

/**
 * The core is about to break a promise, or believes what cannot be. Nobody can tell what else is wrong then: the error
 * ends the process, and the exchange fires the timers.
 */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

/** Design, invariant 1: the two ends of a belief do not cross. Asked whenever a belief has moved. */
export function assertBelief(state: CoreState, market: MarketState): void {
  const { notAfterMs } = market.belief;
  const leastMs = slackMs(state, market);
  const mostMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs;
  if (leastMs <= Math.max(0, mostMs)) return;
  complain(market, `is believed armed for ${leastMs} ms more, and to have fired within ${mostMs} ms`);
}

/** Design, invariants 5, 6 and 10. Asked when a request is handed over to be written. */
export function assertMayFollow(state: CoreState, { market, purpose, id }: Attempt): void {
  const { exit } = market;
  const others = market.inFlight.filter((other) => other.id !== id);
  switch (purpose) {
    case 'renew':
      if (exit !== null && (exit.want !== 'handoff' || exit.done))
        complain(market, 'is renewed although it is guarded no longer');
      if (others.some((other) => other.purpose !== 'renew'))
        complain(market, 'is renewed beside what ends or shortens its timer');
      break;
    case 'trip':
      if (others.length > 0) complain(market, 'is cut short beside another request');
      break;
    case 'delete':
      if (exit?.want !== 'delete' || exit.done) complain(market, 'is deleted, and nobody asked for it');
      if (others.some((other) => other.purpose !== 'delete'))
        complain(market, 'is deleted beside a renewal in flight');
      break;
  }
  if (roomInWindow(state) < 0) complain(market, 'is one request more than the budget allows');
}

function complain({ settings }: MarketState, what: string): never {
  throw new BrokenInvariant(`${settings.market} ${what}`);
}
