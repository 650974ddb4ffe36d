import { expect, test } from 'vitest';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import { refusal, runBothProfiles } from './both-profiles.ts';
import { hostClock, send, signed } from './raw-client.ts';

const { server, ask } = runBothProfiles();

test('arming answers a timer in whole seconds that ends a timeout after its start', async () => {
  const { status, value } = await ask(
    signed({ market: 'BTC_USDT', timeout: '60', types: ['spot', 'margin'] }),
  );
  expect(status).toBe(200);
  const startTime = Math.floor(server('documented').nowMs() / 1000);
  const timer = value as { startTime: number };
  expect(Math.abs(timer.startTime - startTime)).toBeLessThanOrEqual(1);
  expect(value).toEqual({
    market: 'BTC_USDT',
    startTime: timer.startTime,
    cancellationTime: timer.startTime + 60,
    types: ['spot', 'margin'],
  });
});

test.each([
  ['documented', null, ['spot', 'margin', 'futures']],
  ['documented', undefined, ['spot', 'margin', 'futures']],
  ['live', null, null],
  ['live', undefined, null],
  ['live', ['futures'], ['futures']],
] as const)('profile %s answers types %j with %j', async (profile, types, answered) => {
  const { value } = await ask(signed({ market: 'TYPES_USDT', timeout: '60', types }), profile);
  expect(value).toMatchObject({ types: answered });
});

test('a delete answers the removed timer as the document says, and [] as the live exchange does', async () => {
  for (const profile of ['documented', 'live'] as const) {
    const armed = await ask(signed({ market: 'DEL_USDT', timeout: '60' }), profile);
    const deleted = await ask(signed({ market: 'DEL_USDT', timeout: null }), profile);
    expect(deleted).toEqual({ status: 200, value: profile === 'live' ? [] : armed.value });
    const markets = server(profile)
      .exchange.timers()
      .map((timer) => timer.market);
    expect(markets).not.toContain('DEL_USDT');
  }
});

test('a delete of a timer that does not exist is answered with 200', async () => {
  const documented = await ask(signed({ market: 'NONE_USDT', timeout: null }));
  const { startTime } = documented.value as { startTime: number };
  expect(documented).toEqual({
    status: 200,
    value: { market: 'NONE_USDT', startTime, cancellationTime: startTime, types: null },
  });
  expect(await ask(signed({ market: 'NONE_USDT', timeout: null }), 'live')).toEqual({
    status: 200,
    value: [],
  });
});

test.each<[Record<string, unknown>, number, object]>([
  [{}, 30, { market: ['The market field is required.'], timeout: ['The timeout field is required.'] }],
  [{ market: null, timeout: '5' }, 30, { market: ['The market field is required.'] }],
  [{ market: 'BTC_USDT' }, 30, { timeout: ['The timeout field is required.'] }],
  [{ market: 'BTC_USDT', timeout: '4' }, 30, { timeout: ['The timeout should be at least 5.'] }],
  [{ market: 'BTC_USDT', timeout: '-60' }, 30, { timeout: ['The timeout should be at least 5.'] }],
  [{ market: 'BTC_USDT', timeout: '601' }, 30, { timeout: ['The timeout should be at most 600.'] }],
  [
    { market: 'BTC_USDT', timeout: '5.5' },
    30,
    { timeout: ['The timeout should be a whole number of seconds.'] },
  ],
  ...['600.00000000000001', '4.99999999999999999'].map(
    (timeout): [Record<string, unknown>, number, object] => [
      { market: 'BTC_USDT', timeout },
      30,
      { timeout: ['The timeout should be a whole number of seconds.'] },
    ],
  ),
  [
    { market: 'BTC_USDT', timeout: 'null' },
    30,
    { timeout: ['The timeout must be a numeric string or null: "null" in quotes is a string.'] },
  ],
  ...['60s', '', ' 60', '1e2', '0x10', 60, true, {}, ['60']].map(
    (timeout): [Record<string, unknown>, number, object] => [
      { market: 'BTC_USDT', timeout },
      30,
      { timeout: ['The timeout must be a numeric string or null.'] },
    ],
  ),
  [
    { market: 'BTC_USDT', timeout: '5', types: 'spot' },
    30,
    { types: ['The types must be an array or null.'] },
  ],
  [
    { market: 'BTC_USDT', timeout: '5', types: [] },
    30,
    { types: ['The types should have from 1 to 3 items, or be null for all order types.'] },
  ],
  [
    { market: 'BTC_USDT', timeout: '5', types: ['spot', 'options'] },
    30,
    { types: ['The types may contain only: spot, margin, futures.'] },
  ],
  [{ market: '', timeout: '5' }, 31, { market: ['Market must not be an empty string.'] }],
  [{ market: 7, timeout: '5' }, 31, { market: ['Market must be a string.'] }],
  [{ market: 'BTCUSDT', timeout: '5' }, 31, { market: ['Market is not available.'] }],
  [{ market: 'btc_usdt', timeout: null }, 31, { market: ['Market is not available.'] }],
  [
    { market: 'nope', timeout: '4' },
    30,
    { market: ['Market is not available.'], timeout: ['The timeout should be at least 5.'] },
  ],
])('the fields %j are refused with code %i', async (fields, code, errors) => {
  const before = server('documented').exchange.timers();
  expect(await ask(signed(fields))).toEqual({
    status: 422,
    value: refusal(code, 'Validation failed', errors),
  });
  expect(server('documented').exchange.timers()).toEqual(before);
});

test('the live profile words the messages as the live exchange does, and takes the number that clients send', async () => {
  expect(await ask(signed({ timeout: '4' }), 'live')).toEqual({
    status: 422,
    value: refusal(30, 'Validation failed', {
      market: ['Market field is required.'],
      timeout: ['Timeout should be at least 5.'],
    }),
  });
  const taken = await ask(signed({ market: 'BTC_USDT', timeout: 60 }), 'live');
  expect(taken.status).toBe(200);
  expect((await ask(signed({ market: 'BTC_USDT', timeout: 5.5 }), 'live')).status).toBe(422);
});

test('the live profile takes the text null, which libraries send, as the null that deletes a timer', async () => {
  const armed = await ask(signed({ market: 'TEXT_USDT', timeout: '60' }), 'live');
  expect(armed.status).toBe(200);
  const deleted = await ask(signed({ market: 'TEXT_USDT', timeout: 'null' }), 'live');
  expect(deleted).toEqual({ status: 200, value: [] });
  const markets = server('live')
    .exchange.timers()
    .map((timer) => timer.market);
  expect(markets).not.toContain('TEXT_USDT');
});

test('the live profile takes an empty list of types, which libraries send, as all types', async () => {
  const { status, value } = await ask(signed({ market: 'EMPTY_USDT', timeout: '60', types: [] }), 'live');
  expect({ status, value }).toMatchObject({ status: 200, value: { market: 'EMPTY_USDT', types: null } });
});

test('only the listed markets exist where there is a list', async () => {
  const strict = await startSimulatedServer({
    clock: hostClock,
    listen: { host: '127.0.0.1', port: 0 },
    exchange: { markets: ['BTC_USDT'] },
  });
  const known = await send(strict.url, signed({ market: 'BTC_USDT', timeout: '5' }));
  const unknown = await send(strict.url, signed({ market: 'ETH_USDT', timeout: '5' }));
  expect([known.status, unknown.status]).toEqual([200, 422]);
  await strict.close();
});
