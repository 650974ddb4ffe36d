import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROFILES } from '../../src/simulator/answer.ts';
import { type Decimal, decimal, formatDecimal } from '../../src/simulator/decimal.ts';
import type { Books } from '../../src/simulator/holdings.ts';
import { createTrader, keysOf, PATHS } from './trader.ts';

const ACCOUNTS = { a: 'one', b: 'two' };
const KEYS = keysOf(ACCOUNTS);

const amount = fc.oneof(
  fc.integer({ min: 1, max: 2_000_000 }).map(String),
  fc.tuple(fc.nat(2000), fc.nat(999_999)).map(([whole, rest]) => `${whole}.${String(rest).padStart(6, '0')}`),
  fc.tuple(fc.nat(200), fc.nat(99)).map(([whole, rest]) => `${whole}.${String(rest).padStart(2, '0')}`),
  fc.constantFrom('0', '-1', '0.1', '1000000', '9.9996', 'x'),
);
const side = fc.constantFrom('buy', 'sell');
const client_order_id = fc.constantFrom('a', 'b', 'c', '');
const market = fc.constantFrom('BTC_USDT', 'ETH_USDT', 'ETH_BTC', 'XRP_USDT', 'NOPE_USDT', 'BTC_PERP');
const price = fc.constantFrom('50000', '60000', '70000', '0.03', '0.05', 'x');
const ticker = fc.constantFrom('BTC', 'ETH', 'USDT', 'XRP', 'EUR', 'XMR');
const unique_id = fc.constantFrom('a', 'b', 'c', 'd');
const address = fc.constant('somewhere');
const provider = fc.constant('SEPA');

const step = fc.record({
  key: fc.constantFrom('a' as const, 'b' as const),
  pretend: fc.constantFrom(undefined, undefined, undefined, 'pretend' as const),
  request: fc.oneof(
    fc.record({
      path: fc.constant(PATHS.stockMarket),
      fields: fc.record({ market, side, amount, client_order_id }),
    }),
    fc.record({
      path: fc.constant('/api/v4/order/new'),
      fields: fc.record({ market, side, amount, price, client_order_id, ioc: fc.boolean() }),
    }),
    fc.record({
      path: fc.constantFrom(PATHS.withdrawPay, '/api/v4/main-account/withdraw'),
      fields: fc.record({ ticker, amount, address, unique_id, provider }),
    }),
  ),
});

const read = (text: string | undefined) => decimal(text ?? '0');
const written = (amounts: readonly (string | undefined)[]) =>
  formatDecimal(amounts.map(read).reduce((sum, one) => sum + one, 0n));

/** The currencies of which there is more or less than was deposited. */
function unconserved({ accounts, market: bought, fees, withdrawn, deposited }: Books): string[] {
  const purses = [...Object.values(accounts), bought, fees, withdrawn];
  const currencies = new Set([deposited, ...purses].flatMap((purse) => Object.keys(purse)));
  return [...currencies].filter(
    (currency) => written(purses.map((purse) => purse[currency])) !== written([deposited[currency]]),
  );
}

test.each(PROFILES)('profile %s keeps all money and no balance below zero, whatever is asked', (profile) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { exchange, ask } = createTrader({ profile, keys: KEYS });
      for (const { key, pretend, request } of steps) {
        const { path, fields } = request;
        const account = ACCOUNTS[key];
        const before = exchange.books();
        /** What the balances of the account must be, from the replies alone. */
        const own: Record<string, string | undefined> = { ...before.accounts[account] };
        const change = (currency: string, by: Decimal) => {
          const sum = read(own[currency]) + by;
          own[currency] = sum === 0n ? undefined : formatDecimal(sum);
        };
        const { status, value } = ask(path, fields, { key, ...(pretend && { pretend }) });
        expect([200, 201, 400, 422]).toContain(status);
        if (status >= 400 || pretend) {
          expect(exchange.books()).toEqual(before);
        } else if ('market' in fields) {
          const [base = '', quote = ''] = fields.market.split('_');
          const order = value as Record<string, string>;
          const stock = read(order['deal_stock'] ?? order['dealStock']);
          const money = read(order['deal_money'] ?? order['dealMoney']);
          const isBuy = fields.side === 'buy';
          change(base, isBuy ? stock : -stock);
          change(quote, (isBuy ? -money : money) - read(order['deal_fee'] ?? order['dealFee']));
          if (profile === 'documented' && isBuy && path === PATHS.stockMarket)
            expect(written([formatDecimal(money), order['left']])).toBe(written([fields.amount]));
        } else {
          const made = exchange
            .withdrawals()
            .find((one) => one.account === account && one.uniqueId === fields.unique_id);
          const taken = written([made?.amount ?? 'none', made?.fee ?? 'none']);
          change(fields.ticker, -read(taken));
          expect(path === PATHS.withdrawPay ? made?.amount : taken).toBe(written([fields.amount]));
        }
        const books = exchange.books();
        expect(unconserved(books)).toEqual([]);
        expect(books.accounts).toEqual({ ...before.accounts, [account]: own });
        const all = Object.values(books.accounts).flatMap((purse) => Object.values(purse));
        expect(all.filter((text) => read(text) < 0n)).toEqual([]);
      }
    }),
    { numRuns: 150 },
  );
});
