import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROFILES } from '../../src/simulator/answer.ts';
import { type Decimal, decimal, formatDecimal } from '../../src/simulator/decimal.ts';
import type { Books } from '../../src/simulator/holdings.ts';
import { createTrader, keysOf, PATHS, type Trader } from './trader.ts';

const CURRENCIES = ['BTC', 'ETH', 'USDT', 'XRP', 'EUR'];
const ACCOUNTS = { a: 'one', b: 'two' };
const KEYS = keysOf(ACCOUNTS);

const amount = fc.oneof(
  fc.integer({ min: 1, max: 2_000_000 }).map(String),
  fc.tuple(fc.nat(2000), fc.nat(999_999)).map(([whole, rest]) => `${whole}.${String(rest).padStart(6, '0')}`),
  fc.tuple(fc.nat(200), fc.nat(99)).map(([whole, rest]) => `${whole}.${String(rest).padStart(2, '0')}`),
  fc.constantFrom('0', '-1', '0.1', '1000000', '9.9996', 'x'),
);

const step = fc.record({
  key: fc.constantFrom('a', 'b'),
  pretend: fc.constantFrom(undefined, undefined, undefined, 'pretend' as const),
  request: fc.oneof(
    fc.record({
      path: fc.constant(PATHS.stockMarket),
      fields: fc.record({
        market: fc.constantFrom('BTC_USDT', 'ETH_USDT', 'ETH_BTC', 'XRP_USDT', 'NOPE_USDT', 'BTC_PERP'),
        side: fc.constantFrom('buy', 'sell'),
        amount,
        client_order_id: fc.constantFrom('a', 'b', 'c', ''),
      }),
    }),
    fc.record({
      path: fc.constant('/api/v4/order/new'),
      fields: fc.record({
        market: fc.constantFrom('BTC_USDT', 'ETH_BTC', 'NOPE_USDT'),
        side: fc.constantFrom('buy', 'sell'),
        amount,
        price: fc.constantFrom('50000', '60000', '70000', '0.03', '0.05', 'x'),
        client_order_id: fc.constantFrom('a', 'b', 'c', ''),
        ioc: fc.boolean(),
      }),
    }),
    fc.record({
      path: fc.constantFrom(PATHS.withdrawPay, '/api/v4/main-account/withdraw'),
      fields: fc.record({
        ticker: fc.constantFrom(...CURRENCIES, 'XMR'),
        amount,
        address: fc.constant('somewhere'),
        unique_id: fc.constantFrom('a', 'b', 'c', 'd'),
        provider: fc.constant('SEPA'),
      }),
    }),
  ),
});

const read = (text: string | undefined): Decimal => decimal(text ?? '0');
const total = (amounts: readonly Decimal[]): string =>
  formatDecimal(amounts.reduce((sum, one) => sum + one, 0n));

/** What each account's balances must be, from the replies alone. */
function createAccountant(books: Books) {
  const balances = new Map<string, Decimal>();
  const place = (key: 'a' | 'b', currency: string) => `${ACCOUNTS[key]} ${currency}`;
  for (const [account, amounts] of Object.entries(books.accounts)) {
    for (const [currency, text] of Object.entries(amounts))
      balances.set(`${account} ${currency}`, read(text));
  }
  const change = (key: 'a' | 'b', currency: string, by: Decimal) => {
    const id = place(key, currency);
    balances.set(id, (balances.get(id) ?? 0n) + by);
  };
  return {
    change,
    agrees(trader: Trader): string[] {
      return [...balances]
        .map(([id, balance]) => [id, formatDecimal(balance)] as const)
        .filter(([id, balance]) => {
          const [account = '', currency = ''] = id.split(' ');
          return trader.balance(currency, account) !== balance;
        })
        .map(([id]) => id);
    },
  };
}

function conserved({ accounts, market, fees, withdrawn, deposited }: Books): string[] {
  const purses = [...Object.values(accounts), market, fees, withdrawn];
  const currencies = new Set([deposited, ...purses].flatMap((purse) => Object.keys(purse)));
  return [...currencies].filter(
    (currency) =>
      total(purses.map((purse) => read(purse[currency]))) !== formatDecimal(read(deposited[currency])),
  );
}

test.each(PROFILES)(
  'profile %s: whatever is asked, no money comes or goes, and no balance is below zero',
  (profile) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const trader = createTrader({ profile, keys: KEYS });
        const accountant = createAccountant(trader.exchange.books());
        for (const { key, pretend, request } of steps) {
          const { path, fields } = request;
          const before = trader.exchange.books();
          const { status, value } = trader.ask(path, fields, { key, ...(pretend && { pretend }) });
          expect([200, 201, 400, 422]).toContain(status);
          if (status >= 400 || pretend) {
            expect(trader.exchange.books()).toEqual(before);
          } else if ('market' in fields) {
            const [base = '', quote = ''] = fields.market.split('_');
            const order = value as Record<string, string>;
            const stock = read(order['deal_stock'] ?? order['dealStock']);
            const money = read(order['deal_money'] ?? order['dealMoney']);
            const isBuy = fields.side === 'buy';
            accountant.change(key, base, isBuy ? stock : -stock);
            accountant.change(key, quote, isBuy ? -money : money);
            accountant.change(key, quote, -read(order['deal_fee'] ?? order['dealFee']));
            if (profile === 'documented' && isBuy && path === PATHS.stockMarket) {
              expect(formatDecimal(money + read(order['left']))).toBe(formatDecimal(read(fields.amount)));
            }
          } else {
            const made = trader.exchange
              .withdrawals()
              .find((one) => one.account === ACCOUNTS[key] && one.uniqueId === fields.unique_id);
            const taken = read(made?.amount ?? 'none') + read(made?.fee ?? 'none');
            accountant.change(key, fields.ticker, -taken);
            const told = path === PATHS.withdrawPay ? made?.amount : formatDecimal(taken);
            expect(told).toBe(formatDecimal(read(fields.amount)));
          }
          const books = trader.exchange.books();
          expect(conserved(books)).toEqual([]);
          expect(accountant.agrees(trader)).toEqual([]);
          const all = Object.values(books.accounts).flatMap((own) => Object.values(own));
          expect(all.filter((text) => read(text) < 0n)).toEqual([]);
        }
      }),
      { numRuns: 150 },
    );
  },
);

test('a run can be repeated: the same requests get the same bytes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 15 }), fc.nat(), (steps, seed) => {
      const run = () => {
        const trader = createTrader({ keys: KEYS, seed, newAddresses: true });
        return [
          ...steps.map(({ key, request }) => trader.ask(request.path, request.fields, { key })),
          trader.ask(PATHS.codes, {}, { key: 'a' }),
          trader.ask(PATHS.newAddress, { ticker: 'XRP' }, { key: 'a' }),
          trader.ask(PATHS.hashrate, { account: 'rig' }, { key: 'b' }),
          trader.get(PATHS.miningPool),
          trader.exchange.books(),
        ];
      };
      expect(run()).toEqual(run());
    }),
    { numRuns: 20 },
  );
});
