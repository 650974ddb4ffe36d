import { expect, test } from 'vitest';
import type { Profile } from '../../src/simulator/answer.ts';
import { createTrader, keysOf, PATHS, START_MS, type Trader } from './trader.ts';

/** Asks for a timer; `atMs` counts from the start. */
const sync = (trader: Trader, atMs: number, fields: object, key = 'demo-key') =>
  trader.ask(PATHS.killSwitch, { market: 'BTC_USDT', ...fields }, { atMs: START_MS + atMs, key });

test.each<[Profile, unknown, unknown]>([
  ['documented', undefined, ['spot', 'margin', 'futures']],
  ['live', null, null],
  ['live', undefined, null],
  ['live', ['futures'], ['futures']],
  // The document bounds the length of no list.
  ['documented', ['spot', 'spot', 'margin', 'spot'], ['spot', 'spot', 'margin', 'spot']],
  // As a library sends it that means all.
  ['live', [], null],
])('profile %s answers types %j with %j', (profile, types, answered) => {
  const { value } = sync(createTrader({ profile }), 0, { timeout: '60', types });
  expect(value).toMatchObject({ types: answered });
});

test.each<[Profile, string | null]>([
  ['documented', null],
  ['live', null],
  ['live', 'null'],
])('profile %s answers a delete, sent as %j, with the removed timer, live with []', (profile, timeout) => {
  const trader = createTrader({ profile });
  const armed = sync(trader, 0, { timeout: '60' });
  const deleted = sync(trader, 0, { timeout });
  expect(deleted).toEqual({ status: 200, value: profile === 'live' ? [] : armed.value });
  expect(trader.exchange.timers()).toEqual([]);
  const again = profile === 'live' ? [] : { market: 'BTC_USDT', types: ['spot', 'margin', 'futures'] };
  expect(sync(trader, 0, { timeout })).toMatchObject({ status: 200, value: again });
});

const kindsOf = ({ exchange }: Trader) => exchange.log.since(0).map(({ kind }) => kind);

test('a timer that nobody renews cancels the orders of its market that its last update was for', () => {
  const trader = createTrader();
  const { exchange } = trader;
  for (const type of ['spot', 'margin', 'futures'] as const)
    for (const market of ['BTC_USDT', 'ETH_USDT'])
      exchange.placeOrder({ market, type, side: 'buy', amount: '1', price: '90' }, START_MS);
  sync(trader, 0, { timeout: '5', types: ['margin'] });
  sync(trader, 1000, { timeout: '10', types: ['spot', 'futures'] });
  exchange.advance(START_MS + 10_999);
  expect(exchange.orders()).toHaveLength(6);
  exchange.advance(START_MS + 11_000);
  const left = exchange.orders().map(({ market, type }) => `${market} ${type}`);
  expect(left).toEqual(['ETH_USDT spot', 'BTC_USDT margin', 'ETH_USDT margin', 'ETH_USDT futures']);
});

test('a renewal that comes after the firing makes a new timer and is still answered with 200', () => {
  const trader = createTrader();
  sync(trader, 0, { timeout: '5' });
  const late = sync(trader, 7000, { timeout: '5' });
  expect(late).toMatchObject({ status: 200, value: { startTime: START_MS / 1000 + 7 } });
  expect(kindsOf(trader)).toEqual(['timer-armed', 'timer-fired', 'timer-armed']);
});

test.each([
  ['floor', 0],
  ['round', 1],
  ['ceil', 1],
] as const)('with rounding %s a timer set at .600 starts %i s after the whole second', (rounding, plus) => {
  const startTime = START_MS / 1000 + plus;
  const { value } = sync(createTrader({ startTimeRounding: rounding }), 600, { timeout: '5' });
  expect(value).toMatchObject({ startTime, cancellationTime: startTime + 5 });
});

test('a cancellation delay puts off the firing, not the reported cancellationTime', () => {
  const trader = createTrader({ cancellationDelayMs: 700 });
  const { value } = sync(trader, 0, { timeout: '5' });
  expect(value).toMatchObject({ cancellationTime: START_MS / 1000 + 5 });
  expect(trader.exchange.nextFiringMs()).toBe(START_MS + 5700);
});

test('two keys of one account share its timers, a key of another account does not', () => {
  const trader = createTrader({ keys: keysOf({ a1: 'a', a2: 'a', b1: 'b' }) });
  for (const key of ['a1', 'a2', 'b1']) sync(trader, 0, { timeout: '5' }, key);
  expect(kindsOf(trader)).toEqual(['timer-armed', 'timer-updated', 'timer-armed']);
  expect(trader.exchange.timers().map(({ account }) => account)).toEqual(['a', 'b']);
});

test('the event log keeps the newest events, numbered without gaps', () => {
  const trader = createTrader({ eventCapacity: 3 });
  for (let index = 0; index < 5; index += 1) sync(trader, 0, { market: 'bad name', timeout: '5' });
  const { log } = trader.exchange;
  const after = (seq: number) => log.since(seq).map((event) => event.seq);
  expect([after(0), after(4), after(99), log.lastSeq()]).toEqual([[3, 4, 5], [5], [], 5]);
});

test('a refused request is in the event log with its reason and without its key', () => {
  const trader = createTrader();
  sync(trader, 0, { timeout: '5' }, 'wrong-key');
  const events = trader.exchange.log.since(0);
  const why = { status: 401, code: 10, why: 'Unauthorized request.' };
  expect(events).toMatchObject([
    { kind: 'request-refused', operation: 'kill-switch', market: 'BTC_USDT', ...why },
  ]);
  expect(JSON.stringify(events)).not.toContain('wrong-key');
});
