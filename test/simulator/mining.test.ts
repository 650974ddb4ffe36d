import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS, START_MS } from './trader.ts';

const NOW = START_MS / 1000;
const HOUR = 3600;
const incorrect = { status: 422, value: { code: 422, message: 'Incorrect timestamp', errors: {} } };

interface Series {
  readonly data: { readonly account: string; readonly hashrate: readonly { readonly timestamp: number }[] };
}

const ask = (fields: object, options = {}) =>
  createTrader(options).ask(PATHS.hashrate, { account: 'rig', ...fields });
const timesOf = (fields: object) =>
  (ask(fields).value as Series).data.hashrate.map(({ timestamp }) => timestamp);

test('a series has a point at every full interval of its range', () => {
  const from = NOW - (NOW % HOUR) - 3 * HOUR;
  const { status, value } = ask({ from, to: from + 2 * HOUR + 1, interval: '1h' });
  expect(status).toBe(200);
  expect(value).toEqual({
    data: {
      account: 'rig',
      hashrate: [0, 1, 2].map((hours) => ({
        timestamp: from + hours * HOUR,
        hashrate: expect.stringMatching(/^\d+$/),
      })),
    },
  });
});

test.each([
  ['5m', 288],
  ['1h', 24],
  ['30m', 48],
  ['24h', 1],
  ['1d', 1],
])('a day in steps of %s has %i points', (interval, points) => {
  expect(timesOf({ from: NOW - 86_400 + 1, to: NOW, interval })).toHaveLength(points);
});

test('what is left out is the last day by the hour, and no point is later than now', () => {
  expect(timesOf({})).toHaveLength(24);
  const times = timesOf({ from: NOW - HOUR, to: NOW + 10 * HOUR });
  expect(times).toEqual([NOW - (NOW % HOUR)]);
});

test('a rate follows from seed, account and moment alone, whatever range it is asked in', () => {
  const at = NOW - (NOW % HOUR);
  const rate = (fields: object, options = {}) =>
    (
      ask({ from: at, to: at, ...fields }, options).value as { data: { hashrate: { hashrate: string }[] } }
    ).data.hashrate.at(-1)?.hashrate;
  expect(rate({})).toBe(rate({ from: at - 10 * HOUR }));
  expect(rate({})).toBe(rate({ interval: '5m' }));
  expect(new Set([rate({}), rate({ account: 'other' }), rate({}, { seed: 2 })]).size).toBe(3);
});

test.each([
  ['that ends before it begins', { from: NOW - 10, to: NOW - 20 }],
  ['before 1970', { from: -1 }],
  ['that begins after now', { from: NOW + 1, to: NOW + 10 }],
  ['of more than 1000 points', { from: NOW - 1001 * 60, to: NOW, interval: '1m' }],
  ['without end', { from: 0, to: Number.MAX_SAFE_INTEGER }],
])('a range %s has an incorrect timestamp', (_name, fields) => {
  expect(ask(fields)).toEqual(incorrect);
});

test.each<[object, object]>([
  [{ account: undefined }, { account: ['The account field is required.'] }],
  [{ account: 7 }, { account: ['The account must be a string.'] }],
  [
    { from: '1', to: 1.5 },
    { from: ['The from must be an integer.'], to: ['The to must be an integer.'] },
  ],
  ...['1w', 'h', '0h', '60', '1H', '-1h', '99999m'].map((interval): [object, object] => [
    { interval },
    { interval: ['The interval must be minutes, hours or days, such as 5m, 1h or 1d.'] },
  ]),
  [{ interval: ['1h'] }, { interval: ['The interval must be a string.'] }],
])('%j is refused', (fields, errors) => {
  expect(ask(fields)).toEqual(invalid(422, 30, errors));
});

test('the live profile knows three intervals', () => {
  expect(ask({ from: 2, to: 1 }, { profile: 'live' })).toEqual(incorrect);
  expect(ask({ interval: '5m' }, { profile: 'live' }).status).toBe(200);
  expect(ask({ interval: '30m' }, { profile: 'live' })).toEqual(
    invalid(400, 0, { interval: ['The interval must be one of 5m, 1h, 24h.'] }),
  );
});

test('the pool overview has every documented field', () => {
  const { status, value } = createTrader().get(PATHS.miningPool);
  expect(status).toBe(200);
  const day = NOW - (NOW % 86_400);
  const point = (timestamp: number) => ({ timestamp, hashrate: expect.stringMatching(/^\d+$/) });
  expect(value).toEqual({
    data: {
      connection_links: ['stratum+tcp://pool.example:3333', 'stratum+tcp://pool.example:443'],
      location: 'global',
      assets: ['BTC'],
      reward_schemes: ['FPPS'],
      workers: expect.any(Number),
      current_hash_rate: expect.stringMatching(/^\d+$/),
      last7days_hash_rate: [7, 6, 5, 4, 3, 2, 1].map((ago) => point(day - ago * 86_400)),
      blocks: Array.from({ length: 10 }, () => ({
        block_found_at: expect.any(Number),
        block_height: expect.any(Number),
      })),
    },
  });
  const { blocks } = (value as { data: { blocks: { block_found_at: number }[] } }).data;
  for (const { block_found_at } of blocks) expect(block_found_at).toBeLessThanOrEqual(NOW);
});

test('the pool is the same for the same seed and hour', () => {
  const at = (atMs: number, seed = 1) => createTrader({ seed }).get(PATHS.miningPool, { atMs }).value;
  expect(at(START_MS)).toEqual(at(START_MS + 1000));
  expect(at(START_MS)).not.toEqual(at(START_MS, 2));
  expect(at(START_MS)).not.toEqual(at(START_MS + 86_400_000));
});
