import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS } from './trader.ts';

interface Page {
  readonly total: number;
  readonly data: readonly { readonly code: string; readonly date: number }[];
  readonly limit: number;
  readonly offset: number;
}

const pageOf = (answer: { value: unknown }) => answer.value as Page;

test('codes come newest first with every documented field, 30 of them unless told otherwise', () => {
  const { status, value } = createTrader().ask(PATHS.codes, {});
  const page = value as Page;
  expect([status, page.total, page.data.length, page.limit, page.offset]).toEqual([200, 42, 30, 30, 0]);
  expect(page.data.map(({ date }) => date)).toEqual(
    page.data.map(({ date }) => date).toSorted((a, b) => b - a),
  );
  for (const code of page.data) {
    expect(code).toEqual({
      amount: expect.stringMatching(/^\d+(\.\d+)?$/),
      code: expect.stringMatching(/^SIM[0-9a-f-]{36}(BTC|ETH|USDT)$/),
      date: expect.any(Number),
      status: 'Activated',
      ticker: expect.stringMatching(/^(BTC|ETH|USDT)$/),
      external_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  }
});

test('pages put together are the whole list, each code once', () => {
  const trader = createTrader();
  const page = (offset: number) => pageOf(trader.ask(PATHS.codes, { limit: 20, offset })).data;
  const all = [...page(0), ...page(20), ...page(40), ...page(60)];
  expect(new Set(all.map(({ code }) => code)).size).toBe(42);
  expect(all).toEqual(pageOf(trader.ask(PATHS.codes, { limit: 100 })).data);
});

test('equal seeds give equal codes, other seeds and other accounts others', () => {
  const keys = [
    { key: 'demo-key', secret: 'demo-secret', account: 'one' },
    { key: 'b', secret: 'demo-secret', account: 'two' },
  ];
  const first = (seed: number, key: string) =>
    pageOf(createTrader({ seed, keys, codes: 1 }).ask(PATHS.codes, {}, { key })).data[0]?.code;
  expect(first(7, 'b')).toBe(first(7, 'b'));
  expect(new Set([first(7, 'b'), first(8, 'b'), first(7, 'demo-key')]).size).toBe(3);
});

test.each<[object, object]>([
  [{ limit: 0 }, { limit: ['The limit must be at least 1.'] }],
  [{ limit: 101 }, { limit: ['The limit may not be greater than 100.'] }],
  [{ offset: -1 }, { offset: ['The offset must be at least 0.'] }],
  [{ offset: 10_001 }, { offset: ['The offset may not be greater than 10000.'] }],
  [
    { limit: '30', offset: 1.5 },
    { limit: ['The limit must be an integer.'], offset: ['The offset must be an integer.'] },
  ],
  [{ limit: null }, { limit: ['The limit must be an integer.'] }],
])('%j is refused', (fields, errors) => {
  expect(createTrader().ask(PATHS.codes, fields)).toEqual(invalid(422, 30, errors));
  expect(createTrader({ profile: 'live' }).ask(PATHS.codes, fields)).toEqual(invalid(400, 0, errors));
});

test('the ends of the ranges are taken', () => {
  const trader = createTrader();
  expect(pageOf(trader.ask(PATHS.codes, { limit: 1, offset: 10_000 }))).toEqual({
    total: 42,
    data: [],
    limit: 1,
    offset: 10_000,
  });
  expect(trader.ask(PATHS.codes, { limit: 100, offset: 0 }).status).toBe(200);
  expect(createTrader({ profile: 'live' }).ask(PATHS.codes, {}).status).toBe(201);
});
