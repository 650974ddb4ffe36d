import { expect } from 'vitest';
import type { ServerTimer } from '../../src/core/events.ts';
import type { OperationName } from '../../src/exchange/operations.ts';
import type { ExchangeOptions } from '../../src/simulator/state.ts';
import type { Fields } from '../exchange/samples.ts';
import { send } from '../simulator/raw-client.ts';
import { openServer } from '../simulator/trader.ts';
import { WIRE_CASES } from './cases-wire.ts';
import { EXAMPLES, type Refused } from './document.ts';
import { type AnySide, but, type Case, done, requestOf } from './sides.ts';

const ORDER = 'createStockMarketOrder';
const SWITCH = 'syncKillSwitch';
const OPTIONS: ExchangeOptions = { newAddresses: true, markets: ['BTC_USDT', 'ETH_USDT'] };

/** The exchange refuses it so, and changes no balance; the client does not even send it where it can know. */
async function refuses(side: AnySide, operation: OperationName, fields: Fields, expected: Refused) {
  const { status, code, field, says, sent } = expected;
  const before = side.exchange.books();
  const outcome = await side.ask(operation, fields);
  if (side.kind === 'client' && !sent) return expect(outcome).toEqual({ kind: 'not-sent', field });
  expect(outcome).toMatchObject({ kind: 'refused', status, code });
  if (outcome.kind !== 'refused') return expect.fail('not refused');
  if (operation === ORDER || operation === SWITCH) expect(outcome.message).toContain('Validation failed');
  expect((outcome.errors[field] ?? []).join(' ')).toMatch(says);
  expect(side.exchange.books()).toEqual(before);
}

const examples: readonly Case[] = EXAMPLES.map(({ operation, rows, text, fields, expected }) => {
  const given = but(operation, fields);
  const hasMessage = 'status' in expected && (operation === ORDER || operation === SWITCH);
  return {
    title: `${operation} ${text}`,
    rows: [...rows, ...(hasMessage ? [`${operation} rule message`] : [])],
    options: OPTIONS,
    async check(side) {
      if ('status' in expected) return refuses(side, operation, given, expected);
      expect(JSON.stringify(await done(side, operation, given))).toMatch(expected);
    },
  };
});

type Check = (side: AnySide, ask: (fields?: Fields) => Promise<unknown>) => Promise<unknown>;

/** What the exchange does for the sample of an operation with other fields. `rows` are those of the operation. */
const doesWith =
  (options: ExchangeOptions) =>
  (operation: OperationName, title: string, rows: string, check: Check): Case => ({
    title: `${operation}: ${title}`,
    rows: rows.split(', ').map((row) => `${operation} ${row}`),
    options,
    async check(side) {
      await check(side, (fields = {}) => done(side, operation, but(operation, fields)));
    },
  });
const does = doesWith(OPTIONS);

const balances = (side: AnySide) => side.exchange.books().accounts['main'];
const BOOKS = { balances: { main: { BTC: '1', USDT: '1000' } }, terms: { BTC_USDT: { feeRate: '0.01' } } };
const FILLED = 'request amount, status 200, reply deal_fee, state FILLED';

const ORDERS: readonly Case[] = [
  doesWith(BOOKS)(ORDER, 'a buy counts quote, a sell base, the fee is quote', FILLED, async (side, ask) => {
    const filled = { deal_fee: '6', left: '0', status: 'FILLED' };
    expect(await ask({ side: 'buy', amount: '600', client_order_id: 'buy' })).toMatchObject(filled);
    expect(balances(side)).toEqual({ BTC: '1.01', USDT: '394' });
    expect(await ask({ side: 'sell', amount: '0.01', client_order_id: 'sell' })).toMatchObject(filled);
    expect(balances(side)).toEqual({ BTC: '1', USDT: '988' });
  }),
  does(ORDER, 'client_order_id is unique', 'limit client_order_id', async (side, ask) => {
    await ask();
    const used = { status: 400, code: 36, field: 'client_order_id', says: /already used/, sent: true };
    await refuses(side, ORDER, but(ORDER, {}), used);
  }),
  does(ORDER, 'an exchange that is unavailable answers with 503', 'status 503', async () => {
    // The exchange itself never is: its server says so for it.
    const server = await openServer();
    server.addFaults([{ kind: 'maintenance' }]);
    expect(await send(server.url, requestOf(ORDER, but(ORDER, {})))).toMatchObject({ status: 503 });
  }),
];

const fires = (types: readonly string[] | null, row: string, left: readonly string[]) =>
  does(SWITCH, `a timer with types ${JSON.stringify(types)} cancels those`, row, async (side, ask) => {
    const order = { side: 'buy', amount: '1', price: '1', market: 'BTC_USDT' } as const;
    for (const type of ['spot', 'margin', 'futures'] as const)
      side.exchange.placeOrder({ ...order, type }, Date.now());
    side.exchange.placeOrder({ ...order, market: 'ETH_USDT', type: 'spot' }, Date.now());
    side.exchange.advance(((await ask({ types })) as ServerTimer).cancellationTime * 1000);
    const resting = side.exchange.orders().map(({ market, type }) => `${market} ${type}`);
    expect(resting).toEqual([...left, 'ETH_USDT spot']);
  });
const ARMED = 'limit timeout, state none to active, state active to active';

const TIMERS: readonly Case[] = [
  does(SWITCH, 'a timer ends 5 to 600 s after its start, and is updated', ARMED, async (side, ask) => {
    for (const timeout of ['600', '5', '60']) {
      const { startTime, cancellationTime } = (await ask({ timeout })) as ServerTimer;
      expect(cancellationTime - startTime).toBe(Number(timeout));
      expect(side.exchange.timers()).toMatchObject([{ market: 'BTC_USDT', startTime, cancellationTime }]);
    }
  }),
  does(SWITCH, 'null deletes the timer of the market alone', 'state active to none', async (side, ask) => {
    await ask({ market: 'ETH_USDT' });
    await ask();
    await ask({ timeout: null });
    expect(side.exchange.timers()).toMatchObject([{ market: 'ETH_USDT' }]);
  }),
  fires(null, 'state fires for all types', []),
  fires(['spot'], 'state fires for its types', ['BTC_USDT margin', 'BTC_USDT futures']),
  does(SWITCH, 'a timeout is text, and a number is refused', 'request timeout', async (side, ask) => {
    const refused = { status: 422, code: 30 };
    if (side.kind === 'client') await ask();
    else expect(await side.ask(SWITCH, but(SWITCH, { timeout: 60 }))).toMatchObject(refused);
  }),
];

const SOME = { balances: { main: { USDT: '100' } } };
const PAID = 'rule fee on top, request amount, status 200';
const WAYS = 'request network, request provider';
const PAGES = 'request offset, state Activated';
const POINTS = 'request account, request from, request to';

const ACCOUNTS: readonly Case[] = [
  doesWith(SOME)('withdrawPay', 'the amount is paid, the fee is on top', PAID, async (side, ask) => {
    await ask();
    expect(side.exchange.withdrawals()).toMatchObject([{ amount: '10', fee: '3.2', address: 'TXyz' }]);
    expect(balances(side)).toEqual({ USDT: '86.8' });
  }),
  does('withdrawPay', 'it goes over its network or its provider', WAYS, async (side, ask) => {
    await ask({ network: undefined });
    await ask({ unique_id: 'w-2', network: 'OMNI' });
    await ask({ unique_id: 'w-3', ticker: 'EUR', provider: 'SEPA', network: undefined });
    const ways = side.exchange.withdrawals().map(({ network, provider }) => network ?? provider);
    expect(ways).toEqual(['ERC20', 'OMNI', 'SEPA']);
  }),
  does('withdrawPay', 'a unique_id makes one withdrawal', 'limit unique_id', async (side, ask) => {
    await ask();
    const taken = { status: 400, code: 30, field: 'unique_id', says: /already been taken/, sent: true };
    await refuses(side, 'withdrawPay', but('withdrawPay', {}), taken);
  }),
  doesWith({ codes: 150 })('myCodes', 'limit and offset choose the page', PAGES, async (_side, ask) => {
    const page = async (limit: number, offset: number) =>
      (await ask({ limit, offset })) as { total: number; data: readonly object[] };
    const all = await page(100, 0);
    expect([all.total, all.data.length]).toEqual([150, 100]);
    for (const code of all.data) expect(code).toMatchObject({ status: 'Activated' });
    expect((await page(1, 7)).data).toEqual([all.data[7]]);
    expect((await page(100, 100)).data).toHaveLength(50);
    expect((await page(1, 10_000)).data).toEqual([]);
  }),
  does('miningHashrate', 'a point for each interval of the account', POINTS, async (_side, ask) => {
    const timesOf = async (interval: string) => {
      const reply = (await ask({ interval })) as { data: { hashrate: { timestamp: number }[] } };
      expect(reply.data).toMatchObject({ account: 'rig' });
      return reply.data.hashrate.map(({ timestamp }) => timestamp);
    };
    expect(await timesOf('1h')).toEqual([1_700_002_800, 1_700_006_400]);
    expect(await timesOf('30m')).toHaveLength(4);
  }),
  doesWith({})('createNewAddress', 'is disabled for an account', 'rule disabled by default', async (side) => {
    const outcome = await side.ask('createNewAddress', but('createNewAddress', {}));
    expect(outcome).toMatchObject({ kind: 'refused', status: 403 });
    expect(side.exchange.addresses()).toEqual([]);
  }),
  does('createNewAddress', 'each is another address', 'rule even when unused', async (side, ask) => {
    for (let times = 0; times < 3; times += 1) await ask();
    expect(new Set(side.exchange.addresses().map((made) => made.address)).size).toBe(3);
  }),
];

/** Every case of the contract suite. */
export const CASES: readonly Case[] = [...WIRE_CASES, ...examples, ...ORDERS, ...TIMERS, ...ACCOUNTS];
