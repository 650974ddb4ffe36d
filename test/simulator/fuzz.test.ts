import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROFILES } from '../../src/simulator/answer.ts';
import { type Decimal, decimal, formatDecimal } from '../../src/simulator/decimal.ts';
import type { Books } from '../../src/simulator/holdings.ts';
import { EXTRAS, OPERATIONS } from '../../src/simulator/operations.ts';
import { control, nextNonce, send, signedText } from './raw-client.ts';
import { createTrader, keysOf, PATHS, runServer, START_MS } from './trader.ts';

const server = runServer({ exchange: { newAddresses: true } });

const ALL = [...OPERATIONS, ...EXTRAS];
const PRIVATE = ALL.filter(({ method }) => method === 'POST').map(({ path }) => path);
const KNOWN_STATUS = [200, 201, 400, 401, 403, 404, 405, 413, 422, 429];

/** What is not of the document in an answer: an unknown status, or a body of no documented shape. */
function complaint(path: string, status: number, text: string): string | null {
  if (!KNOWN_STATUS.includes(status)) return `status ${status}`;
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) return 'neither object nor array';
  const names = Object.keys(value).toSorted().join();
  const error = path.includes('/public/') ? 'message,params,success' : 'code,errors,message';
  return status < 300 || names === error ? null : names;
}

function ask({ exchange }: ReturnType<typeof createTrader>, path: string, fields: string) {
  const sent = signedText(`{${fields}"request":"${path}","nonce":"${nextNonce()}"}`, { path });
  const headers = { ...sent.headers, authorization: 'Bearer demo-token' };
  const reply = exchange.handle({ ...sent, headers }, START_MS);
  return { status: reply.status, found: complaint(path, reply.status, reply.body) };
}

const WORDS =
  'BTC_USDT BTC_PERP buy sell 10 0.001 -1 BTC USDT EUR __proto__ constructor ERC20 SEPA bech32 1h x 60 5';
const NUMBERS = [1e308, 1e-308, -0, 0, 1, 100, 1_700_000_000, Number.MAX_SAFE_INTEGER];
const LONG = ['9'.repeat(5000), `0.${'0'.repeat(5000)}1`];
const ODD = [null, true, [], {}, ['spot'], '', ...LONG, '\u0661', '1\u0000', '\ud800_USDT'];
const likely = fc.constantFrom<unknown>(...WORDS.split(' '), ...NUMBERS, ...ODD);
const FIELDS = (
  'market side amount price client_order_id clientOrderId stp ticker address unique_id provider network type limit ' +
  'offset account from to interval timeout types order_id orderId postOnly ioc nonceWindow __proto__ toString'
).split(' ');
const anyFields = fc.dictionary(fc.constantFrom(...FIELDS), fc.oneof(likely, likely, fc.jsonValue()), {
  maxKeys: 10,
});

test.each(PROFILES)('profile %s answers any fields as documented, money moves only with a 2xx', (profile) => {
  const trader = createTrader({ profile, newAddresses: true });
  fc.assert(
    fc.property(fc.constantFrom(...PRIVATE), anyFields, (path, fields) => {
      const before = trader.exchange.books();
      const inside = JSON.stringify(fields).slice(1, -1);
      const { status, found } = ask(trader, path, inside === '' ? '' : `${inside},`);
      expect(found).toBeNull();
      if (status >= 300) expect(trader.exchange.books()).toEqual(before);
    }),
    { numRuns: 2000 },
  );
});

test.each(PRIVATE)('%s takes fields nested as deep as a body allows', (path) => {
  const trader = createTrader({ newAddresses: true });
  const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`;
  for (const field of FIELDS) expect(ask(trader, path, `"${field}":${deep},`).found).toBeNull();
});

test('any method, headers and bytes over HTTP get a documented answer and change nothing', async () => {
  const before = server().exchange.books();
  const headerText = fc.stringMatching(/^[ -~]{0,80}$/);
  const names = ['content-type', 'x-txc-apikey', 'x-txc-payload', 'x-txc-signature', 'authorization'];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'),
      fc.constantFrom(...ALL.map(({ path }) => path), '//', '/api/v4/%zz', '/simulatorx'),
      fc.dictionary(fc.constantFrom(...names), headerText),
      fc.oneof(fc.uint8Array({ maxLength: 2000 }), fc.uint8Array({ minLength: 66_000, maxLength: 70_000 })),
      async (method, path, headers, bytes) => {
        const received = await send(server().url, { method, path, headers, body: Buffer.from(bytes) });
        expect(complaint(path, received.status, received.body)).toBeNull();
      },
    ),
    { numRuns: 150 },
  );
  expect(server().exchange.books()).toEqual(before);
});

test('anything posted to a control endpoint is carried out or refused with a sentence', async () => {
  const kinds = fc.constantFrom('latency', 'hang', 'lie', 'toString', 1);
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), kinds, async (value, kind) => {
      const wrapped = typeof value === 'object' && !Array.isArray(value) ? { ...value, kind } : value;
      for (const path of ['faults', 'orders', 'balances', 'prices', 'keys', 'reset']) {
        const answer = await control(server().url, 'POST', `/simulator/${path}`, wrapped);
        const { error } = answer.value as { error?: string };
        expect(answer.status < 300 || (answer.status === 400 && (error ?? '').length > 0)).toBe(true);
      }
    }),
    { numRuns: 50 },
  );
  server().clearFaults();
});

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
