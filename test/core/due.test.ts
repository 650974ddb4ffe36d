import { expect, test } from 'vitest';
import { dueAt, dueBy, dueUntil, hurry, lookAnew } from '../../src/core/due.ts';
import { createRandom } from '../../src/simulator/random.ts';
import { createDriver } from './driver.ts';

const NAMES = Array.from({ length: 40 }, (_, place) => `M${place}`);

function stage() {
  const { state, now } = createDriver({ markets: NAMES });
  const startMs = now().monoMs;
  for (const market of state.markets) dueAt(state, market, startMs + 100_000);
  const market = (place: number) => {
    const found = state.markets[place];
    if (found === undefined) throw new Error(`no market ${place}`);
    return found;
  };
  const pass = (ms: number) => {
    state.now = { ...state.now, monoMs: state.now.monoMs + ms };
  };
  const listed = () => dueUntil(state, state.now.monoMs).markets;
  return { state, market, pass, listed };
}

test('a market that wants something sooner than before is found at once', () => {
  const { state, market, listed } = stage();
  expect(listed()).toEqual([]);
  dueBy(state, market(3), state.now.monoMs + 10);
  hurry(state, market(5));
  expect(listed()).toEqual([market(3), market(5)]);
  dueBy(state, market(3), state.now.monoMs + 90_000);
  expect(market(3).nextMs).toBe(state.now.monoMs + 10);
});

test('a market is found once, however often its next attempt is moved', () => {
  const { state, market, listed } = stage();
  listed();
  for (const inMs of [20, 90_000, 5, 0]) dueAt(state, market(7), state.now.monoMs + inMs);
  expect(listed()).toEqual([market(7)]);
});

test('a timer that is to be cut or given up is found, whenever its next attempt is', () => {
  const { state, market, listed } = stage();
  market(1).tripWanted = true;
  market(2).exit = { want: 'keep', done: false };
  lookAnew(state);
  expect(listed()).toEqual([market(1), market(2)]);
});

test('when each wants something stands beside it, and at all times what is not only renewed', () => {
  const { state, market } = stage();
  const at = (place: number) => {
    const { markets, atMs } = dueUntil(state, state.now.monoMs);
    return atMs[markets.indexOf(market(place))];
  };
  dueAt(state, market(1), state.now.monoMs + 10);
  expect(at(1)).toBe(state.now.monoMs + 10);
  dueAt(state, market(1), state.now.monoMs + 90_000);
  expect(at(1)).toBe(state.now.monoMs + 90_000);
  market(1).tripWanted = true;
  dueAt(state, market(1), state.now.monoMs + 20);
  market(2).exit = { want: 'delete', done: false };
  dueAt(state, market(2), state.now.monoMs);
  expect([at(1), at(2)]).toEqual([Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]);
});

test('whoever wakes up every 250 ms need not wake up for the list', () => {
  const { state, pass } = stage();
  for (let tick = 0; tick < 40; tick += 1) {
    expect(dueUntil(state, state.now.monoMs).untilMs).toBeGreaterThan(state.now.monoMs + 250);
    pass(250);
  }
});

test('nobody who is due is ever missed, and hardly anybody is looked at for nothing', () => {
  const { state, market, pass, listed } = stage();
  const random = createRandom(7);
  let looks = 0;
  for (let turn = 0; turn < 5000; turn += 1) {
    pass(random() * 60);
    for (let moves = random() * 3; moves > 1; moves -= 1) {
      dueAt(state, market(Math.floor(random() * NAMES.length)), state.now.monoMs + random() ** 3 * 12_000);
    }
    const found = new Set(listed());
    looks += found.size;
    const due = state.markets.filter(({ nextMs }) => nextMs <= state.now.monoMs);
    expect(due.filter((one) => !found.has(one))).toEqual([]);
    for (const one of due) dueAt(state, one, state.now.monoMs + 5000 + random() * 5000);
  }
  expect(looks / 5000).toBeLessThan(NAMES.length / 2);
});
