import { expect, test } from 'vitest';
import { encodePayload } from '../../src/exchange/sign.ts';
import {
  createSimulatedExchange,
  type ExchangeOptions,
  type SimulatedExchange,
} from '../../src/simulator/simulated-exchange.ts';
import { KILL_SWITCH, nextNonce, PING, signed } from './raw-client.ts';

const START_MS = 1_700_000_000_000;

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

test('a spot-only timer leaves margin and futures orders alone', () => {
  const exchange = withOrders();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5', types: ['spot'] });
  exchange.advance(START_MS + 5000);
  const left = exchange.orders().filter((order) => order.market === 'BTC_USDT');
  expect(left.map((order) => order.type)).toEqual(['margin', 'futures']);
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

test('a shorter timeout brings the firing forward', () => {
  const exchange = withOrders();
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '60' });
  sync(exchange, START_MS + 1000, { market: 'BTC_USDT', timeout: '5' });
  expect(exchange.nextFiringMs()).toBe(START_MS + 6000);
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
  const keys = [
    { key: 'a1', secret: 's', account: 'a' },
    { key: 'a2', secret: 's', account: 'a' },
    { key: 'b1', secret: 's', account: 'b' },
  ];
  const exchange = createSimulatedExchange({ keys });
  for (const { key } of keys) {
    exchange.handle(signed({ market: 'BTC_USDT', timeout: '5' }, { key, secret: 's' }), START_MS);
  }
  expect(kinds(exchange)).toEqual(['timer-armed', 'timer-updated', 'timer-armed']);
  expect(exchange.timers().map((timer) => timer.account)).toEqual(['a', 'b']);
});

test('a pretended request is answered like a real one and changes nothing', () => {
  const exchange = withOrders();
  const before = exchange.log.lastSeq();
  const pretended = sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5' }, 'pretend');
  expect(pretended).toMatchObject({ status: 200, value: { cancellationTime: START_MS / 1000 + 5 } });
  expect(exchange.timers()).toEqual([]);
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: '5' });
  sync(exchange, START_MS, { market: 'BTC_USDT', timeout: null }, 'pretend');
  expect(exchange.timers()).toHaveLength(1);
  expect(kinds(exchange).slice(before)).toEqual(['timer-armed']);
});

test('the event log keeps the newest events, numbered without gaps', () => {
  const exchange = createSimulatedExchange({ eventCapacity: 3 });
  for (let index = 0; index < 5; index += 1) sync(exchange, START_MS, { market: 'bad name', timeout: '5' });
  expect(exchange.log.since(0).map((event) => event.seq)).toEqual([3, 4, 5]);
  expect(exchange.log.since(4).map((event) => event.seq)).toEqual([5]);
  expect(exchange.log.since(99)).toEqual([]);
  expect(exchange.log.lastSeq()).toBe(5);
});

test('equal requests at equal times give equal bytes and equal events', () => {
  const requests = Array.from({ length: 50 }, (_, index) => ({
    request: signed({
      market: `M${index % 7}_USDT`,
      timeout: index % 11 === 0 ? null : '5',
      types: ['spot'],
    }),
    atMs: START_MS + index * 400,
  }));
  const run = () => {
    const exchange = withOrders();
    const replies = requests.map(({ request, atMs }) => exchange.handle(request, atMs));
    return JSON.stringify([replies, exchange.log.since(0)]);
  };
  expect(run()).toBe(run());
});

test('10,000 generated markets can be armed and fire in time', () => {
  const exchange = createSimulatedExchange({ checkSignatures: false });
  for (let index = 0; index < 10_000; index += 1) {
    const timeout = String(5 + (index % 10));
    const fields = { request: KILL_SWITCH, nonce: nextNonce(), market: `M${index}_USDT`, timeout };
    const body = JSON.stringify(fields);
    const headers = {
      'content-type': 'application/json',
      'x-txc-apikey': 'demo-key',
      'x-txc-payload': encodePayload(body),
      'x-txc-signature': 'unchecked',
    };
    exchange.handle({ method: 'POST', path: KILL_SWITCH, headers, body }, START_MS);
  }
  exchange.advance(START_MS + 9_000);
  expect(exchange.timers()).toHaveLength(5000);
  exchange.advance(START_MS + 14_000);
  expect(exchange.timers()).toEqual([]);
  expect(exchange.nextFiringMs()).toBeNull();
});

test('the kill-switch limit of 10,000 requests slides over 10 s, and ping has its own', () => {
  const exchange = createSimulatedExchange({ limits: { 'kill-switch': { requests: 3, windowMs: 10_000 } } });
  const ask = (atMs: number) => sync(exchange, START_MS + atMs, { market: 'BTC_USDT', timeout: '60' }).status;
  expect([ask(0), ask(4000), ask(8000), ask(9999)]).toEqual([200, 200, 200, 429]);
  expect([ask(10_000), ask(13_999), ask(14_000)]).toEqual([200, 429, 200]);
  const ping = { method: 'GET', path: PING, headers: {}, body: '' };
  const statuses = Array.from({ length: 2001 }, () => exchange.handle(ping, START_MS).status);
  expect(statuses.indexOf(429)).toBe(2000);
  expect(exchange.handle(ping, START_MS + 10_000).status).toBe(200);
});

test('a request over the limit gets JSON in the documented profile and a page of the gateway in the live one', () => {
  const limits = {
    'kill-switch': { requests: 1, windowMs: 10_000 },
    ping: { requests: 1, windowMs: 10_000 },
  };
  const bodies = (['documented', 'live'] as const).map((profile) => {
    const exchange = createSimulatedExchange({ profile, limits });
    const requests = [
      signed({ market: 'BTC_USDT', timeout: '60' }),
      signed({ market: 'BTC_USDT', timeout: '60' }),
    ];
    return requests.map((request) => exchange.handle(request, START_MS)).at(-1);
  });
  expect(JSON.parse(bodies[0]?.body ?? '')).toEqual({
    code: 0,
    message: 'Rate limit exceeded: 1 requests per 10 seconds.',
    errors: {},
  });
  expect(bodies[1]).toMatchObject({ status: 429, headers: { 'content-type': 'text/html; charset=UTF-8' } });
  expect(bodies[1]?.body).toContain('429 Too Many Requests');
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
