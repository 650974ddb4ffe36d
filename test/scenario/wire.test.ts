import { describe, expect, test } from 'vitest';
import { gatewayPage, jsonReply } from '../../src/simulator/answer.ts';
import { createWireBench, EPOCH_MS } from './wire.ts';

const HOUR_MS = 3_600_000;
const spot = {
  market: 'BTC_USDT',
  timeoutMs: 10_000,
  types: ['spot'],
  renewEveryMs: null,
  bot: 'bot',
} as const;
const markets = ['BTC_USDT:60', 'ETH_USDT:60', 'LTC_USDT:60'];
const order = (market: string, type: 'spot' | 'margin') =>
  ({ market, type, side: 'buy', amount: '1', price: '100' }) as const;
const noncesOf = (bench: ReturnType<typeof createWireBench>) =>
  bench.requests.map(({ body }) => Number(body['nonce']));

describe.each(['documented', 'live'] as const)('against an exchange of the profile %s', (profile) => {
  const exchange = { profile };

  test('orders rest while the daemon lives, and those of the right type are cancelled within T + 1 s of its death', () => {
    const bench = createWireBench({ markets: [spot], exchange });
    const { server } = bench;
    server.placeOrder(order('BTC_USDT', 'spot'), EPOCH_MS);
    server.placeOrder(order('BTC_USDT', 'margin'), EPOCH_MS);
    const { clock } = bench.boot();
    bench.run(60_000);
    expect(server.orders()).toHaveLength(2);
    clock.kill();
    const diedMs = bench.nowMs();
    bench.run(11_000);
    expect(server.orders().map(({ type }) => type)).toEqual(['margin']);
    const cancelled = bench.eventsOf('order-cancelled');
    expect(cancelled).toHaveLength(1);
    expect((cancelled[0]?.atMs ?? 0) - EPOCH_MS - diedMs).toBeLessThanOrEqual(11_000);
  });

  test('a stop deletes the timers that it armed, and takes the answer of this exchange for a confirmation', () => {
    const bench = createWireBench({ markets, exchange });
    const { keeper } = bench.boot();
    bench.run(10_000);
    expect(bench.server.timers()).toHaveLength(3);
    void keeper.stop('delete', 'SIGTERM');
    bench.run(1000);
    expect(bench.server.timers()).toEqual([]);
    expect(bench.noticesOf('stopped')).toEqual([expect.objectContaining({ left: [] })]);
    expect(bench.requests.at(-1)?.body).toMatchObject({ timeout: null });
    expect(bench.eventsOf('timer-deleted')).toHaveLength(3);
  });

  test('a wall clock that is set an hour back costs no renewal: nonces go on rising', () => {
    const bench = createWireBench({ markets, exchange });
    const { clock } = bench.boot();
    bench.run(20_000);
    clock.stepWall(-HOUR_MS);
    bench.run(60_000);
    expect(bench.noticesOf('attempt-failed')).toEqual([]);
    const nonces = noncesOf(bench);
    expect(nonces).toEqual(nonces.toSorted((one, other) => one - other));
    expect(new Set(nonces).size).toBe(nonces.length);
    expect(bench.eventsOf('timer-fired')).toEqual([]);
  });

  test('a restart on a host whose clock was set back finds its nonce again before any timer fires', () => {
    const bench = createWireBench({ markets: ['BTC_USDT:10', 'ETH_USDT:10'], exchange });
    const first = bench.boot();
    bench.run(20_000);
    first.clock.kill();
    bench.run(1000);
    bench.boot(-HOUR_MS);
    bench.run(60_000);
    expect(bench.noticesOf('attempt-failed').map(({ reason }) => reason)).toContain('nonce');
    expect(bench.eventsOf('timer-fired')).toEqual([]);
    expect(bench.server.timers()).toHaveLength(2);
  });

  test('in a nonce window a wrong clock is found out and costs one request', () => {
    const bench = createWireBench({ markets, nonce: 'window', exchange });
    bench.boot(HOUR_MS);
    bench.run(5000);
    expect(bench.server.timers()).toHaveLength(3);
    expect(bench.noticesOf('attempt-failed').length).toBeLessThanOrEqual(3);
    bench.run(60_000);
    expect(bench.noticesOf('attempt-failed').length).toBeLessThanOrEqual(3);
  });

  test('a market that is not available is latched, and the others go on', () => {
    const bench = createWireBench({
      markets: ['BTC_USDT:10', 'NO_SUCH:10', 'ETH_USDT:10'],
      exchange: { ...exchange, markets: ['BTC_USDT', 'ETH_USDT'] },
    });
    bench.boot();
    bench.run(100_000);
    expect(bench.noticesOf('refused')).toEqual([expect.objectContaining({ market: 'NO_SUCH', code: 31 })]);
    expect(bench.requests.filter(({ body }) => body['market'] === 'NO_SUCH')).toHaveLength(2);
    expect(
      bench.server
        .timers()
        .map(({ market }) => market)
        .toSorted(),
    ).toEqual(['BTC_USDT', 'ETH_USDT']);
    expect(bench.eventsOf('timer-fired')).toEqual([]);
  });

  test('a wrong secret is tried once a minute and no more, until it is put right', () => {
    const bench = createWireBench({ markets, exchange });
    bench.setCredentials({ key: 'demo-key', secret: 'wrong' });
    const { keeper } = bench.boot();
    bench.run(150_000);
    expect(bench.requests.map(({ status }) => status)).toEqual([401, 401, 401]);
    expect(keeper.snapshot()).toMatchObject({ authorised: false, ready: false });
    bench.setCredentials({ key: 'demo-key', secret: 'demo-secret' });
    keeper.credentialsChanged();
    bench.run(1000);
    expect(bench.server.timers()).toHaveLength(3);
    expect(keeper.snapshot()).toMatchObject({ authorised: true, ready: true });
  });
});

describe('what a gateway or a broken wire makes of an answer', () => {
  const armed = () => {
    const bench = createWireBench({ markets });
    const daemon = bench.boot();
    bench.run(20_500);
    return { bench, ...daemon };
  };

  test.each([
    ['a page with status 503', gatewayPage(503, 'Service Temporarily Unavailable'), 'http_5xx'],
    ['a page with status 200', gatewayPage(200, 'Welcome'), 'parse'],
    ['JSON that ends early', { ...jsonReply(200, {}), body: '{"market":"BTC_US' }, 'parse'],
    [
      'an error in a success',
      jsonReply(200, { code: 0, message: 'Something went wrong', errors: {} }),
      'parse',
    ],
  ] as const)('(%s) for twenty seconds is tried through, and lapses nothing', (_what, reply, reason) => {
    const { bench } = armed();
    bench.twist((_request, atMs) => (atMs < 40_000 ? reply : null));
    bench.run(60_000);
    expect(new Set(bench.noticesOf('attempt-failed').map((one) => one.reason))).toEqual(new Set([reason]));
    expect(bench.eventsOf('timer-fired')).toEqual([]);
    expect(bench.noticesOf('lapsed')).toEqual([]);
    expect(bench.server.timers()).toHaveLength(3);
  });

  test('a real 429 slows the cadence down, a stale nonce in the same status does not', () => {
    const { bench, keeper } = armed();
    let left = 1;
    bench.twist(() => {
      left -= 1;
      return left === 0 ? jsonReply(429, { code: 0, message: 'Too many requests.', errors: {} }) : null;
    });
    bench.run(5000);
    expect(bench.noticesOf('attempt-failed').map(({ reason }) => reason)).toEqual(['nonce']);
    expect(keeper.state.cadenceFactor).toBe(1);
    left = 1;
    bench.twist(() => {
      left -= 1;
      return left === 0 ? gatewayPage(429, 'Too Many Requests') : null;
    });
    bench.run(5000);
    expect(bench.noticesOf('throttled')).toHaveLength(1);
    expect(keeper.state.cadenceFactor).toBe(1.5);
  });

  test('silence for longer than the timers lapses them, which the stamps of the next answers prove', () => {
    const { bench, keeper } = armed();
    bench.twist((_request, atMs) => (atMs < 100_000 ? 'lost' : null));
    bench.run(82_000);
    expect(bench.eventsOf('timer-fired')).toHaveLength(3);
    expect(
      bench
        .noticesOf('lapsed')
        .map(({ market }) => market)
        .toSorted(),
    ).toEqual(['BTC_USDT', 'ETH_USDT', 'LTC_USDT']);
    expect(bench.server.timers()).toHaveLength(3);
    expect(keeper.snapshot().ready).toBe(true);
  });
});

test('somebody else who changes the timer is noticed with the next renewal', () => {
  const bench = createWireBench({ markets: ['BTC_USDT:60'] });
  bench.boot();
  bench.run(10_000);
  bench.twist(() =>
    jsonReply(200, {
      market: 'BTC_USDT',
      startTime: 1_700_000_012,
      cancellationTime: 1_700_000_042,
      types: ['spot'],
    }),
  );
  bench.run(7000);
  expect(bench.noticesOf('altered')[0]?.detail).toBe(
    'the exchange answered with a timer of 30 s instead of 60 s and order types spot instead of spot, margin, futures',
  );
});
