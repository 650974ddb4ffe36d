import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byUrgency, orderOf } from '../../src/core/urgency.ts';
import { createDriver } from './driver.ts';

const TIMEOUT_MS = 60_000;
/** Few different values, so that many markets are equal; and fractions that differ by less than a nanosecond. */
const leftMs = fc.oneof(
  fc.constantFrom(-100, 0, 20, 20.000_000_001, 29_999, 30_000, 30_001, 59_000),
  fc.double({ min: -5000, max: 60_000, noNaN: true }),
);
const due = fc.array(
  fc.record({ leftMs, confirmedOnce: fc.boolean(), waitedMs: fc.constantFrom(0, 1, 1.000_000_001, 500) }),
  { minLength: 1, maxLength: 60 },
);

function stage(wanted: readonly { leftMs: number; confirmedOnce: boolean; waitedMs: number }[]) {
  const { state } = createDriver({ markets: wanted.map((_, place) => `M${place}:${TIMEOUT_MS / 1000}`) });
  state.roundTripMs = 20;
  for (const [place, market] of state.markets.entries()) {
    const { leftMs: slackMs = 0, confirmedOnce = false, waitedMs = 0 } = wanted[place] ?? {};
    market.belief.notBeforeLifeMs = state.lifeMs + slackMs;
    market.belief.notBeforeAwakeMs = market.belief.notBeforeLifeMs;
    market.confirmedOnce = confirmedOnce;
    Object.assign(market, { nextMs: state.now.monoMs - waitedMs });
  }
  return state;
}

test('the first of many are those that come first where each is compared with each', () => {
  fc.assert(
    fc.property(due, fc.integer({ min: 1, max: 70 }), (wanted, most) => {
      const state = stage(wanted);
      const { markets, pressingUntilMs } = orderOf(state, state.markets.toReversed(), most);
      const compared = state.markets.toSorted(byUrgency(state, pressingUntilMs));
      expect(markets.map(({ index }) => index)).toEqual(compared.slice(0, most).map(({ index }) => index));
    }),
  );
});

test('what has lost half of its time presses, and with it all that ends sooner', () => {
  const state = stage(
    [50_000, 30_000, 29_000, 20, 5].map((slackMs) => ({ leftMs: slackMs, confirmedOnce: true, waitedMs: 0 })),
  );
  expect(orderOf(state, state.markets, 5).pressingUntilMs).toBe(30_000);
  // One alone presses as well; what cannot be saved any more does not.
  expect(orderOf(state, state.markets.slice(2, 3), 5).pressingUntilMs).toBe(29_000);
  expect(orderOf(state, state.markets.slice(3), 5).pressingUntilMs).toBe(0);
  expect(orderOf(state, state.markets.slice(0, 1), 5).pressingUntilMs).toBe(0);
});
