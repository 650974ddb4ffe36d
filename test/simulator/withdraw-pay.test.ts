import { expect, test } from 'vitest';
import { createTrader, invalid, PATHS } from './trader.ts';

const { withdrawPay } = PATHS;
const good = { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' };

test('the receiver gets the amount, and the fee is taken on top', () => {
  const trader = createTrader();
  expect(trader.ask(withdrawPay, good)).toEqual({ status: 200, value: [] });
  expect(trader.balance('BTC')).toBe('8.9996');
  const { withdrawn, fees } = trader.exchange.books();
  expect([withdrawn, fees]).toEqual([{ BTC: '1' }, { BTC: '0.0004' }]);
  expect(trader.exchange.withdrawals()).toMatchObject([
    { uniqueId: 'w-1', ticker: 'BTC', amount: '1', fee: '0.0004', address: 'somewhere', network: 'BTC' },
  ]);
});

test('a unique_id is used once, and a refused withdrawal does not use it up', () => {
  const trader = createTrader();
  expect(trader.ask(withdrawPay, { ...good, amount: '11' }).status).toBe(400);
  expect(trader.ask(withdrawPay, good).status).toBe(200);
  expect(trader.ask(withdrawPay, good)).toEqual(
    invalid(400, 30, { unique_id: ['The unique_id has already been taken.'] }),
  );
  expect(trader.balance('BTC')).toBe('8.9996');
});

test('the whole balance less the fee can be withdrawn, and not a unit more', () => {
  const trader = createTrader();
  const more = trader.ask(withdrawPay, { ...good, amount: '9.99960001' });
  expect(more).toEqual(invalid(400, 32, { amount: ['Not enough money, BTC balance = 10, fee = 0.0004'] }));
  expect(trader.ask(withdrawPay, { ...good, amount: '9.9996' }).status).toBe(200);
  expect(trader.balance('BTC')).toBe('0');
});

test.each([
  [{ ticker: 'USDT', amount: '5' }, 'ERC20'],
  [{ ticker: 'USDT', amount: '5', network: 'TRC20' }, 'TRC20'],
  [{ ticker: 'USDC', amount: '5', network: 'SOL' }, 'SOL'],
  [{ ticker: 'BTC', network: 'BTC' }, 'BTC'],
  [{ ticker: 'EUR', amount: '5', provider: 'SEPA' }, null],
])('%j goes over the network %s', (fields, network) => {
  const trader = createTrader();
  expect(trader.ask(withdrawPay, { ...good, ...fields }).status).toBe(200);
  expect(trader.exchange.withdrawals()).toMatchObject([
    { network, provider: network === null ? 'SEPA' : null },
  ]);
});

const missing = (field: string) => [`The ${field} field is required.`];
test.each<[object, number, number, object]>([
  [
    { ticker: undefined, amount: undefined, address: undefined, unique_id: undefined },
    422,
    30,
    {
      ticker: missing('ticker'),
      amount: missing('amount'),
      address: missing('address'),
      unique_id: missing('unique_id'),
    },
  ],
  [{ address: '' }, 422, 30, { address: missing('address') }],
  [
    { address: 7, ticker: {} },
    422,
    30,
    { address: ['The address must be a string.'], ticker: ['The ticker must be a string.'] },
  ],
  [{ amount: 1 }, 422, 30, { amount: ['The amount must be a string.'] }],
  [{ amount: '1e3' }, 422, 32, { amount: ['The amount must be a numeric string.'] }],
  [
    { unique_id: 'x'.repeat(256) },
    422,
    30,
    { unique_id: ['The unique_id may not be longer than 255 characters.'] },
  ],
  [{ network: null }, 422, 30, { network: ['The network must be a string.'] }],
  [{ network: '' }, 422, 30, { network: ['The network must not be an empty string.'] }],
  [{ ticker: 'EUR' }, 422, 30, { provider: missing('provider') }],
  [
    { ticker: 'EUR', provider: 'BANK' },
    400,
    30,
    { provider: ['Unsupported provider. EUR has: VISAMASTER, SEPA.'] },
  ],
  [{ ticker: 'NOPE' }, 400, 30, { ticker: ['The selected ticker is invalid.'] }],
  [{ ticker: '__proto__' }, 400, 30, { ticker: ['The selected ticker is invalid.'] }],
  [{ ticker: 'XMR' }, 400, 30, { ticker: ['The currency has can_deposit false and cannot be withdrawn.'] }],
  [{ network: 'TRC20' }, 400, 30, { network: ['Unsupported network. BTC has: BTC.'] }],
  [{ ticker: 'USDC' }, 400, 30, { network: ['Cannot extract default network. USDC has: ERC20, SOL.'] }],
  [{ amount: '0' }, 400, 32, { amount: ['The amount must be greater than 0.'] }],
  [{ amount: '-1' }, 400, 32, { amount: ['The amount must be greater than 0.'] }],
  [{ amount: '0.000000001' }, 400, 32, { amount: ['The amount may have at most 8 digits after the point.'] }],
])('%j is refused with %i, code %i, and no balance changes', (fields, status, code, errors) => {
  const trader = createTrader();
  const before = trader.exchange.books();
  expect(trader.ask(withdrawPay, { ...good, ...fields })).toEqual(invalid(status, code, errors));
  expect(trader.exchange.books()).toEqual(before);
  expect(trader.exchange.withdrawals()).toEqual([]);
});

test('a pretended withdrawal is answered and leaves no trace', () => {
  const trader = createTrader();
  const before = trader.exchange.books();
  expect(trader.ask(withdrawPay, good, { pretend: 'pretend' }).status).toBe(200);
  expect([trader.exchange.books(), trader.exchange.withdrawals()]).toEqual([before, []]);
  expect(trader.ask(withdrawPay, good).status).toBe(200);
});

test('the live profile answers 201, takes uniqueId, and has its own codes', () => {
  const trader = createTrader({ profile: 'live' });
  const { unique_id: uniqueId, ...rest } = good;
  const live = { ...rest, uniqueId };
  expect(trader.ask(withdrawPay, live)).toEqual({ status: 201, value: [] });
  expect(trader.ask(withdrawPay, live)).toEqual(
    invalid(400, 0, { uniqueId: ['The unique id has already been taken.'] }),
  );
  expect(trader.ask(withdrawPay, { ...live, uniqueId: 'w-2', amount: '9' })).toEqual({
    status: 422,
    value: {
      code: 5,
      message: 'Inner validation failed',
      errors: { amount: ['Not enough money, BTC balance = 8.9996, fee = 0.0004'] },
    },
  });
  expect(trader.ask(withdrawPay, {})).toMatchObject({
    status: 400,
    value: { code: 0, errors: { uniqueId: ['The unique id field is required.'] } },
  });
});
