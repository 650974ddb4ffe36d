import { expect, test } from 'vitest';
import { createNarrator } from '../../src/simulator/event-log.ts';
import type { OrderRequest } from '../../src/simulator/holdings.ts';
import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import { runBothProfiles } from './both-profiles.ts';
import { signed } from './raw-client.ts';
import { createTrader, keysOf, PATHS, START_MS, type Trader } from './trader.ts';

const { server, ask } = runBothProfiles();

test.each([
  ['documented', null, ['spot', 'margin', 'futures']],
  ['documented', undefined, ['spot', 'margin', 'futures']],
  ['live', null, null],
  ['live', undefined, null],
  ['live', ['futures'], ['futures']],
  // As a library sends it that means all.
  ['live', [], null],
] as const)('profile %s answers types %j with %j', async (profile, types, answered) => {
  const { value } = await ask(signed({ market: 'TYPES_USDT', timeout: '60', types }), profile);
  expect(value).toMatchObject({ types: answered });
});

// Libraries for the live exchange send the text null as well.
test.each([
  ['documented', null],
  ['live', null],
  ['live', 'null'],
] as const)(
  'profile %s answers a delete, sent as %j, with the removed timer as the document says, live with []',
  async (profile, timeout) => {
    const armed = await ask(signed({ market: 'DEL_USDT', timeout: '60' }), profile);
    const deleted = await ask(signed({ market: 'DEL_USDT', timeout }), profile);
    expect(deleted).toEqual({ status: 200, value: profile === 'live' ? [] : armed.value });
    const timers = server(profile).exchange.timers();
    expect(timers.map(({ market }) => market)).not.toContain('DEL_USDT');
  },
);

test('the document answers the delete of a timer that does not exist with every field of a timer', async () => {
  const { status, value } = await ask(signed({ market: 'NONE_USDT', timeout: null }));
  expect(status).toBe(200);
  expect(value).toMatchObject({ market: 'NONE_USDT', types: ['spot', 'margin', 'futures'] });
});

test('any BASE_QUOTE is a market, however long', async () => {
  const market = `${'A'.repeat(21)}_USDT`;
  expect((await ask(signed({ market, timeout: '60' }))).status).toBe(200);
});

const kindsOf = ({ exchange }: Trader) => exchange.log.since(0).map(({ kind }) => kind);

/** Asks for a timer; `atMs` counts from the start. */
const sync = (trader: Trader, atMs: number, fields: object) =>
  trader.ask(PATHS.killSwitch, fields, { atMs: START_MS + atMs });

/** An order of each type in two markets. */
function withOrders(): Trader {
  const trader = createTrader();
  for (const type of ['spot', 'margin', 'futures'] as const) {
    const place = (order: Pick<OrderRequest, 'market' | 'side' | 'price'>) =>
      trader.exchange.placeOrder({ ...order, type, amount: '1' }, START_MS);
    place({ market: 'BTC_USDT', side: 'buy', price: '90' });
    place({ market: 'ETH_USDT', side: 'sell', price: '110' });
  }
  return trader;
}

test('a timer that nobody renews cancels every order of its market, and of no other', () => {
  const trader = withOrders();
  const { exchange } = trader;
  sync(trader, 0, { market: 'BTC_USDT', timeout: '5' });
  exchange.advance(START_MS + 4999);
  expect(exchange.orders()).toHaveLength(6);
  exchange.advance(START_MS + 5000);
  expect(exchange.orders().map((order) => order.market)).toEqual(['ETH_USDT', 'ETH_USDT', 'ETH_USDT']);
  expect(exchange.timers()).toEqual([]);
  expect(exchange.log.since(7)).toEqual([
    {
      seq: 8,
      atMs: START_MS + 5000,
      kind: 'timer-fired',
      account: 'main',
      market: 'BTC_USDT',
      cancellationTime: START_MS / 1000 + 5,
      types: null,
      cancelledOrders: 3,
    },
    ...[1, 3, 5].map((orderId, index) => ({
      seq: 9 + index,
      atMs: START_MS + 5000,
      kind: 'order-cancelled',
      account: 'main',
      orderId,
      market: 'BTC_USDT',
      type: ['spot', 'margin', 'futures'][index],
      by: 'kill-switch',
    })),
  ]);
});

test('an update replaces timeout and types of the timer', () => {
  const trader = withOrders();
  const { exchange } = trader;
  sync(trader, 0, { market: 'BTC_USDT', timeout: '5', types: ['spot'] });
  sync(trader, 1000, { market: 'BTC_USDT', timeout: '10', types: ['margin'] });
  exchange.advance(START_MS + 10_999);
  expect(exchange.orders()).toHaveLength(6);
  exchange.advance(START_MS + 11_000);
  const left = exchange.orders().filter((order) => order.market === 'BTC_USDT');
  expect(left.map((order) => order.type)).toEqual(['spot', 'futures']);
});

test('a renewal that comes after the firing makes a new timer and is still answered with 200', () => {
  const trader = createTrader();
  sync(trader, 0, { market: 'BTC_USDT', timeout: '5' });
  const late = sync(trader, 7000, { market: 'BTC_USDT', timeout: '5' });
  expect(late).toMatchObject({ status: 200, value: { startTime: START_MS / 1000 + 7 } });
  expect(kindsOf(trader)).toEqual(['timer-armed', 'timer-fired', 'timer-armed']);
});

test.each([
  ['floor', 0],
  ['round', 1],
  ['ceil', 1],
] as const)('with rounding %s a timer set at .600 starts %i s after the whole second', (rounding, plus) => {
  const trader = createTrader({ startTimeRounding: rounding });
  const startTime = START_MS / 1000 + plus;
  const { value } = sync(trader, 600, { market: 'BTC_USDT', timeout: '5' });
  expect(value).toMatchObject({ startTime, cancellationTime: startTime + 5 });
});

test('a cancellation delay puts off the firing, not the reported cancellationTime', () => {
  const trader = createTrader({ cancellationDelayMs: 700 });
  const { value } = sync(trader, 0, { market: 'BTC_USDT', timeout: '5' });
  expect(value).toMatchObject({ cancellationTime: START_MS / 1000 + 5 });
  expect(trader.exchange.nextFiringMs()).toBe(START_MS + 5700);
});

test('two keys of one account share its timers, a key of another account does not', () => {
  const trader = createTrader({ keys: keysOf({ a1: 'a', a2: 'a', b1: 'b' }) });
  for (const key of ['a1', 'a2', 'b1'])
    trader.ask(PATHS.killSwitch, { market: 'BTC_USDT', timeout: '5' }, { key });
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
  sync(trader, 0, { market: 'BTC_USDT', timeout: '4' });
  trader.ask(PATHS.killSwitch, { market: 'BTC_USDT', timeout: '5' }, { key: 'wrong-key' });
  const why = 'Validation failed: The timeout should be at least 5.';
  const refused = { kind: 'request-refused', operation: 'kill-switch', market: 'BTC_USDT' };
  expect(trader.exchange.log.since(0)).toMatchObject([
    { ...refused, status: 422, code: 30, why },
    { ...refused, status: 401, code: 10, why: 'Unauthorized request.' },
  ]);
  expect(JSON.stringify(trader.exchange.log.since(0))).not.toContain('wrong-key');
});

const NOON_MS = Date.UTC(2026, 0, 2, 12, 0, 0);

function narrated(): { exchange: SimulatedExchange; lines: string[] } {
  const lines: string[] = [];
  const exchange = createSimulatedExchange();
  exchange.log.subscribe(createNarrator((line) => lines.push(line)));
  return { exchange, lines };
}

test('a firing timer and each order that it cancels are told with their time', () => {
  const { exchange, lines } = narrated();
  exchange.placeOrder({ market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' }, NOON_MS);
  exchange.handle(signed({ market: 'BTC_USDT', timeout: '5' }), NOON_MS);
  exchange.advance(NOON_MS + 5000);
  expect(lines).toEqual([
    '12:00:00Z BTC_USDT: timer armed for 5 s; unless it is renewed it cancels all orders at 12:00:05Z',
    '12:00:05Z BTC_USDT: THE TIMER FIRED; orders cancelled: 1',
    '12:00:05Z BTC_USDT: spot order 1 cancelled by the kill-switch',
  ]);
});

test('a refusal that repeats is told once, and its text cannot control the terminal', () => {
  const { exchange, lines } = narrated();
  for (let times = 0; times < 3; times += 1) {
    exchange.handle(signed({ market: 'A\u001b[2J', timeout: '5' }), NOON_MS);
  }
  expect(lines).toEqual([
    '12:00:00Z kill-switch A?[2J: refused with 422, code 31: Validation failed: Market is not available.',
  ]);
});
