import { expect, test } from 'vitest';
import { createNarrator } from '../../src/simulator/event-log.ts';
import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import type { ExchangeOptions } from '../../src/simulator/state.ts';
import { runBothProfiles } from './both-profiles.ts';
import { signed } from './raw-client.ts';
import { keysOf, START_MS } from './trader.ts';

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

function sync(
  exchange: SimulatedExchange,
  nowMs: number,
  fields: Readonly<Record<string, unknown>>,
  pretend?: 'pretend',
) {
  const reply = exchange.handle(signed(fields), nowMs, pretend);
  return { status: reply.status, value: JSON.parse(reply.body) as unknown };
}

function kinds(exchange: SimulatedExchange): string[] {
  return exchange.log.since(0).map((event) => event.kind);
}

function withOrders(options: ExchangeOptions = {}): SimulatedExchange {
  const exchange = createSimulatedExchange(options);
  for (const type of ['spot', 'margin', 'futures'] as const) {
    exchange.placeOrder({ market: 'BTC_USDT', type, side: 'buy', amount: '1', price: '90' }, START_MS);
    exchange.placeOrder({ market: 'ETH_USDT', type, side: 'sell', amount: '1', price: '110' }, START_MS);
  }
  return exchange;
}

test('a timer that nobody renews cancels every order of its market, and of no other', () => {
  const exchange = withOrders();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5' });
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
  const exchange = withOrders();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5', types: ['spot'] });
  sync(exchange, START_MS + 1000, { market: 'BTC_USDT', timeout: '10', types: ['margin'] });
  exchange.advance(START_MS + 10_999);
  expect(exchange.orders()).toHaveLength(6);
  exchange.advance(START_MS + 11_000);
  const left = exchange.orders().filter((order) => order.market === 'BTC_USDT');
  expect(left.map((order) => order.type)).toEqual(['spot', 'futures']);
});

test('a renewal that comes after the firing makes a new timer and is still answered with 200', () => {
  const exchange = withOrders();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5' });
  const late = sync(exchange, START_MS + 7000, { market: 'BTC_USDT', timeout: '5' });
  expect(late).toMatchObject({ status: 200, value: { startTime: START_MS / 1000 + 7 } });
  expect(kinds(exchange).filter((kind) => kind.startsWith('timer'))).toEqual([
    'timer-armed',
    'timer-fired',
    'timer-armed',
  ]);
});

test.each([
  ['floor', 0],
  ['round', 1],
  ['ceil', 1],
] as const)(
  'with rounding %s a timer set at a fraction of .600 starts %i s after the whole second',
  (rounding, plus) => {
    const exchange = createSimulatedExchange({ startTimeRounding: rounding });
    const { value } = sync(exchange, START_MS + 600, { market: 'BTC_USDT', timeout: '5' });
    const startTime = START_MS / 1000 + plus;
    expect(value).toMatchObject({ startTime, cancellationTime: startTime + 5 });
  },
);

test('a cancellation delay puts off the firing, not the reported cancellationTime', () => {
  const exchange = createSimulatedExchange({ cancellationDelayMs: 700 });
  const { value } = sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5' });
  expect(value).toMatchObject({ cancellationTime: START_MS / 1000 + 5 });
  expect(exchange.nextFiringMs()).toBe(START_MS + 5700);
});

test('two keys of one account share its timers, a key of another account does not', () => {
  const keys = keysOf({ a1: 'a', a2: 'a', b1: 'b' });
  const exchange = createSimulatedExchange({ keys });
  for (const { key } of keys)
    exchange.handle(signed({ market: 'BTC_USDT', timeout: '5' }, { key }), START_MS);
  expect(kinds(exchange)).toEqual(['timer-armed', 'timer-updated', 'timer-armed']);
  expect(exchange.timers().map((timer) => timer.account)).toEqual(['a', 'b']);
});

test('the event log keeps the newest events, numbered without gaps', () => {
  const exchange = createSimulatedExchange({ eventCapacity: 3 });
  for (let index = 0; index < 5; index += 1) sync(exchange, START_MS, { market: 'bad name', timeout: '5' });
  expect(exchange.log.since(0).map((event) => event.seq)).toEqual([3, 4, 5]);
  expect(exchange.log.since(4).map((event) => event.seq)).toEqual([5]);
  expect(exchange.log.since(99)).toEqual([]);
  expect(exchange.log.lastSeq()).toBe(5);
});

test('a refused request is in the event log with its reason and without its key', () => {
  const exchange = createSimulatedExchange();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '4' });
  exchange.handle(signed({ market: 'BTC_USDT', timeout: '5' }, { key: 'wrong-key' }), START_MS);
  expect(exchange.log.since(0)).toMatchObject([
    {
      kind: 'request-refused',
      operation: 'kill-switch',
      market: 'BTC_USDT',
      status: 422,
      code: 30,
      why: 'Validation failed: The timeout should be at least 5.',
    },
    { kind: 'request-refused', status: 401, code: 10, why: 'Unauthorized request.' },
  ]);
  expect(JSON.stringify(exchange.log.since(0))).not.toContain('wrong-key');
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
