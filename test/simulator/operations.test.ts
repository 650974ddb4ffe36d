import { describe, expect, test } from 'vitest';
import { createTrader, invalid, keysOf, PATHS, START_MS, type Trader } from './trader.ts';

const { stockMarket, withdrawPay, newAddress } = PATHS;
const buy = { market: 'BTC_USDT', side: 'buy', amount: '100' };
const sell = { market: 'BTC_USDT', side: 'sell', amount: '0.5' };

describe('stock-market', () => {
  test('a buy spends money, a sell takes it less the fee, and the reply has every field of an Order', () => {
    const trader = createTrader();
    const asked = trader.ask(stockMarket, { ...buy, client_order_id: 'a-1.b_2' }, { atMs: START_MS + 250 });
    expect(asked).toEqual({
      status: 200,
      value: {
        order_id: 1,
        client_order_id: 'a-1.b_2',
        market: 'BTC_USDT',
        side: 'buy',
        type: 'stock market',
        timestamp: START_MS / 1000 + 0.25,
        deal_money: '99.96',
        deal_stock: '0.001666',
        amount: '100',
        left: '0.04',
        deal_fee: '0.09996',
        price: '60000',
        postOnly: false,
        ioc: false,
        status: 'FILLED',
        stp: 'no',
        positionSide: 'BOTH',
        rpi: false,
      },
    });
    expect([trader.balance('BTC'), trader.balance('USDT')]).toEqual(['10.001666', '999899.94004']);
    const { value } = trader.ask(stockMarket, sell);
    expect(value).toMatchObject({ client_order_id: '', left: '0', deal_money: '30000', deal_fee: '30' });
    expect([trader.balance('BTC'), trader.balance('USDT')]).toEqual(['9.501666', '1029869.94004']);
  });

  test('no binary fraction ever shows: ten times a tenth is one', () => {
    const trader = createTrader({ balances: { main: { ETH: '1' } } });
    for (let sold = 0; sold < 10; sold += 1) {
      expect(trader.ask(stockMarket, { market: 'ETH_USDT', side: 'sell', amount: 0.1 }).status).toBe(200);
    }
    expect([trader.balance('ETH'), trader.balance('USDT')]).toEqual(['0', '2497.5']);
  });

  const least = (amount: string) =>
    invalid(400, 32, {
      amount: [`Given amount is less than min amount ${amount}`, 'Min amount step = 0.01'],
    });
  test.each([
    ['10', '50', '49', least('50')],
    ['10', '50', '100', { status: 200, value: { deal_stock: '10', deal_fee: '0' } }],
    ['10000000', '5', '9.99', least('10')],
    ['10000000', '5', '10', { status: 200, value: { deal_stock: '0.000001' } }],
  ])(
    'at the price %s with a least total of %s a buy of %s is answered with %j',
    (price, minTotal, amount, answer) => {
      const terms = { BTC_USDT: { price, minTotal, feeRate: '0' } };
      expect(createTrader({ terms }).ask(stockMarket, { ...buy, amount })).toMatchObject(answer);
    },
  );

  test('a market without terms has a price of 100, and terms that are no decimals are refused in words', () => {
    const trader = createTrader({ balances: { main: { FOO: '5' } } });
    const { value } = trader.ask(stockMarket, { market: 'FOO_USDT', side: 'sell', amount: '1' });
    expect(value).toMatchObject({ price: '100', deal_money: '100' });
    const start = (price: string) => () => createTrader({ terms: { BTC_USDT: { price } } });
    expect(start('dear')).toThrow('found "dear"; expected a decimal');
    expect(start('0')).toThrow('price of BTC_USDT: found "0"; expected more than 0');
    expect(() => createTrader({ balances: { main: { BTC: '1,5' } } })).toThrow('found "1,5"');
  });

  test('a client_order_id is used once by an account, and a refused order does not use it up', () => {
    const trader = createTrader({ keys: keysOf({ a: 'one', b: 'two' }) });
    const named = { ...buy, client_order_id: 'x' };
    expect(trader.ask(stockMarket, { ...named, amount: '1' }, { key: 'a' }).status).toBe(400);
    expect(trader.ask(stockMarket, named, { key: 'a' }).status).toBe(200);
    expect(trader.ask(stockMarket, named, { key: 'a' })).toEqual(
      invalid(400, 36, { client_order_id: ['This client_order_id is already used by the account.'] }),
    );
    expect(trader.ask(stockMarket, named, { key: 'b' }).status).toBe(200);
  });

  test('orders and resting orders are numbered together', () => {
    const trader = createTrader();
    const resting = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' } as const;
    trader.exchange.placeOrder(resting, START_MS);
    expect(trader.ask(stockMarket, buy)).toMatchObject({ value: { order_id: 2 } });
    expect(trader.exchange.placeOrder(resting, START_MS).id).toBe(3);
  });

  test('the live profile counts a buy in the base currency, and spells fields as the live exchange does', () => {
    const trader = createTrader({ profile: 'live' });
    const order = {
      market: 'BTC_USDT',
      side: 'buy',
      amount: '0.001',
      clientOrderId: 'x',
      stp: 'cancel_both',
    };
    const { status, value } = trader.ask(stockMarket, order);
    expect(status).toBe(200);
    const named = {
      orderId: 1,
      clientOrderId: 'x',
      takerFee: '0.001',
      feeAsset: 'USDT',
      price: '0',
      stp: 'cb',
    };
    const deal = { dealMoney: '60', dealStock: '0.001', amount: '0.001', left: '0' };
    expect(value).toMatchObject({ ...named, ...deal });
    expect(value).not.toHaveProperty('positionSide');
    expect(trader.ask(stockMarket, order).status).toBe(200);
    const snake = trader.ask(stockMarket, { ...order, client_order_id: 'snake', clientOrderId: undefined });
    expect(snake).toMatchObject({ value: { clientOrderId: 'snake' } });
  });
});

describe('withdraw-pay', () => {
  const good = { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' };

  test('a refused one does not use its unique_id up, and one may take all that is there', () => {
    const trader = createTrader();
    expect(trader.ask(withdrawPay, { ...good, amount: '11' }).status).toBe(400);
    expect(trader.ask(withdrawPay, { ...good, amount: '9.9996' })).toEqual({ status: 200, value: [] });
    expect(trader.balance('BTC')).toBe('0');
    const long = { ...good, unique_id: 'x'.repeat(256) };
    expect(trader.ask(withdrawPay, long)).toMatchObject({ status: 422, value: { code: 30 } });
  });

  test('the live profile answers 201, and takes uniqueId', () => {
    const trader = createTrader({ profile: 'live' });
    const live = { ...good, unique_id: undefined, uniqueId: 'w-1' };
    expect(trader.ask(withdrawPay, live)).toEqual({ status: 201, value: [] });
    const taken = { uniqueId: ['The unique id has already been taken.'] };
    expect(trader.ask(withdrawPay, live)).toEqual(invalid(400, 0, taken));
  });
});

describe('new-address', () => {
  const enabled = { newAddresses: true };
  const addressIn = ({ value }: { value: unknown }) =>
    (value as { account: { address: string } }).account.address;

  test('it is disabled until the account is enabled for it', () => {
    const keys = keysOf({ 'demo-key': 'main', b: 'other' });
    const trader = createTrader({ keys, newAddresses: ['other'] });
    const message = "You don't have permission to use this endpoint.";
    const disabled = { status: 403, value: { code: 4, message, errors: {} } };
    expect(trader.ask(newAddress, { ticker: 'BTC' })).toEqual(disabled);
    expect(trader.ask(newAddress, { ticker: 'BTC' }, { key: 'b' }).status).toBe(200);
    expect(createTrader().ask(newAddress, { ticker: 'BTC' })).toEqual(disabled);
  });

  test.each([
    [{ ticker: 'LTC', type: 'p2sh-segwit' }, /^M/],
    [{ ticker: 'USDT', network: 'OMNI' }, /^1/],
    [{ ticker: 'SOL', network: 'SOL' }, /^simulated/],
  ])('%j begins with %s, and no wallet would take it for a real address', (fields, beginning) => {
    const address = addressIn(createTrader(enabled).ask(newAddress, fields));
    expect(address).toMatch(beginning);
    expect(address).toContain('simulated');
  });

  test('every address is new, and the same again in a run with the same seed; some have a memo', () => {
    const run = (seed: number) => {
      const trader = createTrader({ ...enabled, seed });
      return [1, 2, 3].map(() => addressIn(trader.ask(newAddress, { ticker: 'ETH' })));
    };
    expect(new Set([...run(1), ...run(2)]).size).toBe(6);
    expect(run(1)).toEqual(run(1));
    const made = createTrader({ ...enabled, profile: 'live' }).ask(newAddress, { ticker: 'XRP' });
    const memo: unknown = expect.stringMatching(/^\d+$/);
    expect(made).toMatchObject({ status: 201, value: { account: { memo } } });
  });
});

test.each([
  [stockMarket, { ...buy, client_order_id: 'x' }],
  [withdrawPay, { ticker: 'BTC', amount: '1', address: 'somewhere', unique_id: 'w-1' }],
  [newAddress, { ticker: 'LTC' }],
  [PATHS.killSwitch, { market: 'BTC_USDT', timeout: '60' }],
  ['/api/v4/order/new', { ...buy, amount: '1', price: '10' }],
])('%s, pretended, is answered and leaves no trace', (path, fields) => {
  const trader = createTrader({ newAddresses: true });
  const before = trader.exchange.books();
  const pretended = trader.ask(path, fields, { pretend: 'pretend' });
  const { exchange } = trader;
  const made = [exchange.withdrawals(), exchange.addresses(), exchange.timers(), exchange.orders()];
  expect([exchange.books(), ...made, exchange.log.since(0)]).toEqual([before, [], [], [], [], []]);
  expect(trader.ask(path, fields)).toEqual(pretended);
});

describe('order-history', () => {
  const JSON_BODY = { 'content-type': 'application/json' };

  /** Five orders, one a second: sells of ETH and, every other time, of BTC. */
  function withOrders(options: Parameters<typeof createTrader>[0] = {}): Trader {
    const trader = createTrader(options);
    for (let order = 1; order <= 5; order += 1) {
      const market = order % 2 === 0 ? 'BTC_USDT' : 'ETH_USDT';
      const fields = { market, side: 'sell', amount: '0.1', client_order_id: `id-${order}` };
      trader.ask(stockMarket, fields, { atMs: START_MS + order * 1000 });
    }
    return trader;
  }
  const idsIn = ({ value }: { value: unknown }) =>
    (value as { data: { order_id: number }[] }).data.map((order) => order.order_id);

  test.each([
    [{}, [5, 4, 3, 2, 1]],
    [{ limit: 2, offset: 1 }, [4, 3]],
    [{ offset: 5 }, []],
    [{ market: 'BTC_USDT' }, [4, 2]],
    [{ client_order_id: 'id-3' }, [3]],
    [{ order_id: 2 }, [2]],
    [{ market: 'SOL_USDT' }, []],
  ])('%j are the orders %j', (fields, ids) => {
    expect(idsIn(withOrders().history(fields))).toEqual(ids);
  });

  test('a record has the fields of its creation, and a token opens its own account only', () => {
    const tokens = [
      { token: 'theirs', account: 'other' },
      { token: 'mine', account: 'main' },
    ];
    const trader = createTrader({ tokens });
    const created = trader.ask(stockMarket, buy);
    const ask = (token: string) => trader.history({}, { ...JSON_BODY, authorization: `Bearer ${token}` });
    expect(ask('mine').value).toEqual({ total: 1, data: [created.value], limit: 50, offset: 0 });
    expect(idsIn(ask('theirs'))).toEqual([]);
    expect(ask('demo-token').status).toBe(401);
  });

  test.each<[string, Record<string, string>, number]>([
    ['no header', {}, 401],
    ['an unknown token', { authorization: 'Bearer other' }, 401],
    ['another scheme', { authorization: 'Basic demo-token' }, 401],
    ['a token alone', { authorization: 'demo-token' }, 401],
    ['a token with more behind it', { authorization: 'Bearer demo-token x' }, 401],
    ['the headers of a signed request', { 'x-txc-apikey': 'demo-key' }, 401],
    ['a body of no type', { authorization: 'Bearer demo-token' }, 400],
    ['the scheme in any case', { ...JSON_BODY, authorization: 'bearer  demo-token' }, 200],
  ])('%s (%j) is answered with %i', (_name, headers, status) => {
    expect(createTrader().history({}, headers).status).toBe(status);
    const live = createTrader({ profile: 'live' }).history({}, headers).status;
    expect(live).toBe(status === 400 ? 200 : status);
  });

  test.each(['', '[]', '"x"', 'null', '{', 'hello'])('the body %j is no JSON object', (body) => {
    const headers = { ...JSON_BODY, authorization: 'Bearer demo-token' };
    const asked = { method: 'POST', path: PATHS.history, headers, body };
    const { status, body: text } = createTrader().exchange.handle(asked, START_MS);
    expect([status, text]).toEqual([400, '{"code":9,"message":"Invalid payload.","errors":{}}']);
  });

  test('the live profile groups records by market', () => {
    const { value } = withOrders({ profile: 'live' }).history({ limit: 3 });
    expect(value).toMatchObject({
      ETH_USDT: [{ id: 5, clientOrderId: 'id-5', status: 'FILLED', ctime: START_MS / 1000 + 5 }, { id: 3 }],
      BTC_USDT: [{ id: 4, price: '0', feeAsset: 'USDT', dealStock: '0.1' }],
    });
  });
});

describe('my-codes', () => {
  interface Page {
    readonly total: number;
    readonly data: readonly { readonly code: string; readonly date: number }[];
  }
  const pageOf = (trader: Trader, fields: object = {}, key = 'demo-key') =>
    trader.ask(PATHS.codes, fields, { key }).value as Page;

  test('codes come newest first, 30 unless told otherwise, and pages put together are the whole list', () => {
    const trader = createTrader();
    expect(pageOf(trader)).toMatchObject({ total: 42, limit: 30, offset: 0 });
    const page = (offset: number) => pageOf(trader, { limit: 20, offset }).data;
    const all = [...page(0), ...page(20), ...page(40), ...page(10_000)];
    expect(new Set(all.map(({ code }) => code)).size).toBe(42);
    expect(all).toEqual(pageOf(trader, { limit: 100 }).data);
    expect(all).toEqual(all.toSorted((one, other) => other.date - one.date));
  });

  test('equal seeds give equal codes, other seeds and other accounts others', () => {
    const keys = keysOf({ 'demo-key': 'one', b: 'two' });
    const first = (seed: number, key: string) =>
      pageOf(createTrader({ seed, keys, codes: 1 }), {}, key).data[0]?.code;
    expect(first(7, 'b')).toBe(first(7, 'b'));
    expect(new Set([first(7, 'b'), first(8, 'b'), first(7, 'demo-key')]).size).toBe(3);
  });
});

describe('hashrate and mining-pool', () => {
  const NOW = START_MS / 1000;
  const HOUR = 3600;
  const from = NOW - (NOW % HOUR) - 3 * HOUR;
  interface Point {
    readonly timestamp: number;
    readonly hashrate: string;
  }
  const ask = (fields: object, options = {}) =>
    createTrader(options).ask(PATHS.hashrate, { account: 'rig', ...fields });
  const pointsOf = (fields: object, options = {}) =>
    (ask(fields, options).value as { data: { hashrate: readonly Point[] } }).data.hashrate;

  test.each([
    [{ from, to: from + 2 * HOUR + 1, interval: '1h' }, 3],
    [{ from: NOW - 86_400 + 1, to: NOW, interval: '5m' }, 288],
    [{ from: NOW - 86_400 + 1, to: NOW, interval: '30m' }, 48],
    [{ from: NOW - 86_400 + 1, to: NOW, interval: '24h' }, 1],
    [{}, 24],
    [{ from: NOW - HOUR, to: NOW + 10 * HOUR }, 1],
  ])('the range %j has %i points', (fields, count) => {
    const points = pointsOf(fields);
    expect(points).toHaveLength(count);
    expect(points.every(({ timestamp }) => timestamp <= NOW)).toBe(true);
  });

  test('a rate follows from seed, account and moment alone, whatever range it is asked in', () => {
    const at = NOW - (NOW % HOUR);
    const rate = (fields: object, options = {}) =>
      pointsOf({ from: at, to: at, ...fields }, options).at(-1)?.hashrate;
    expect([rate({ from: at - 10 * HOUR }), rate({ interval: '5m' })]).toEqual([rate({}), rate({})]);
    expect(new Set([rate({}), rate({ account: 'other' }), rate({}, { seed: 2 })]).size).toBe(3);
  });

  test.each([
    ['that ends before it begins', { from: NOW - 10, to: NOW - 20 }],
    ['before 1970', { from: -1 }],
    ['that begins after now', { from: NOW + 1, to: NOW + 10 }],
    ['of more than 1000 points', { from: NOW - 1001 * 60, to: NOW, interval: '1m' }],
    ['without end', { from: 0, to: Number.MAX_SAFE_INTEGER }],
  ])('a range %s has an incorrect timestamp', (_name, fields) => {
    const incorrect = { status: 422, value: { code: 422, message: 'Incorrect timestamp', errors: {} } };
    expect(ask(fields)).toEqual(incorrect);
  });

  test('the pool is the same for the same seed and hour', () => {
    const at = (atMs: number, seed = 1) => createTrader({ seed }).get(PATHS.miningPool, { atMs }).value;
    expect(at(START_MS)).toEqual(at(START_MS + 1000));
    expect(at(START_MS)).not.toEqual(at(START_MS, 2));
    expect(at(START_MS)).not.toEqual(at(START_MS + 86_400_000));
  });
});

describe('listings', () => {
  type Listed = Readonly<Record<string, unknown>>;
  const list = (name: string, options = {}) => createTrader(options).get(`/api/v4/public/${name}`).value;

  test('markets are listed with the terms on which their orders are filled', () => {
    const terms = { BTC_USDT: { feeRate: '0.0025', minAmount: '0.5', stockPrecision: 3 } };
    const wanted = { stockPrec: '3', makerFee: '0.25', minAmount: '0.5', minTotal: '5', type: 'spot' };
    expect(list('markets', { markets: ['BTC_USDT'], terms })).toMatchObject([wanted]);
    const names = (options: object) => (list('markets', options) as Listed[]).map(({ name }) => name);
    expect(names({ markets: ['A_B', 'BTC_PERP', 'A_B'] })).toEqual(['A_B', 'BTC_PERP']);
    expect(names({ terms: { NEW_USDT: { price: '1' } } })).toEqual(
      expect.arrayContaining(['NEW_USDT', 'BTC_USDT', 'BTC_PERP']),
    );
  });

  test('every listed spot market takes an order of its smallest amount', () => {
    const trader = createTrader();
    for (const { name, minAmount, type } of list('markets') as Listed[]) {
      if (type !== 'spot') continue;
      const order = { market: name, side: 'sell', amount: minAmount };
      expect(trader.ask(stockMarket, order), String(name)).toMatchObject({ status: 200 });
    }
  });

  test("currencies are listed with what a withdrawal needs to know of them, and the time is the exchange's", () => {
    expect(list('assets')).toMatchObject({
      XMR: { can_deposit: false, can_withdraw: false },
      USDT: { networks: { withdraws: ['ERC20', 'TRC20', 'OMNI'], default: 'ERC20' }, currency_precision: 6 },
      EUR: { providers: { withdraws: ['VISAMASTER', 'SEPA'] } },
      XRP: { is_memo: true },
    });
    expect(list('time')).toEqual({ time: START_MS / 1000 });
  });
});
