/**
 * A bot on ccxt, which comes from the registry when the test runs and not with this repository. `node ccxt-bot.ts
 * CCXT_URL EXCHANGE_URL` does what a bot does and prints what came of it as JSON. Nothing but the base address differs
 * from a bot at the live exchange.
 */
interface Trader {
  readonly urls: { readonly api: Record<string, Record<string, string>> };
  readonly loadMarkets: () => Promise<object>;
  readonly fetchStatus: () => Promise<{ status: string }>;
  readonly createOrder: (
    symbol: string,
    type: 'market' | 'limit',
    side: 'buy' | 'sell',
    amount: number,
    price?: number,
    params?: object,
  ) => Promise<object>;
  readonly cancelAllOrdersAfter: (timeoutMs: number, params: object) => Promise<unknown>;
  readonly createMarketBuyOrderWithCost: (symbol: string, cost: number) => Promise<object>;
  readonly fetchTicker: (symbol: string) => Promise<object>;
  readonly fetchTickers: () => Promise<Record<string, object>>;
  readonly fetchBalance: () => Promise<Record<string, object>>;
  readonly fetchOpenOrders: (symbol?: string) => Promise<readonly { id: string }[]>;
  readonly fetchClosedOrders: (symbol?: string) => Promise<readonly { id: string }[]>;
  readonly fetchOrder: (id: string, symbol: string) => Promise<object>;
  readonly cancelOrder: (id: string, symbol: string) => Promise<object>;
  readonly cancelAllOrders: (symbol: string) => Promise<unknown>;
  readonly fetchDepositAddress: (code: string, params?: object) => Promise<object>;
  readonly withdraw: (
    code: string,
    amount: number,
    address: string,
    tag?: string,
    params?: object,
  ) => Promise<object>;
  readonly createDepositAddress: (code: string, params: object) => Promise<object>;
  readonly v4PrivatePostMainAccountWithdrawPay: (params: object) => Promise<unknown>;
  readonly v4PrivatePostMainAccountCodesMy: (params: object) => Promise<unknown>;
  readonly v4PrivatePostMiningHashrate: (params: object) => Promise<unknown>;
  readonly v4PublicGetMiningPool: () => Promise<unknown>;
}

interface Ccxt {
  readonly default: Readonly<Record<string, new (options: object) => Trader>>;
}

const [, , ccxtUrl = '', exchangeUrl = ''] = process.argv;
const { default: ccxt } = (await import(ccxtUrl)) as Ccxt;
const Exchange = ccxt['whitebit'];
if (Exchange === undefined) throw new Error('this ccxt does not know the exchange');
const trader = new Exchange({ apiKey: 'demo-key', secret: 'demo-secret' });
for (const addresses of Object.values(trader.urls.api)) {
  for (const [kind, address] of Object.entries(addresses)) {
    addresses[kind] = address.replace(new URL(address).origin, exchangeUrl);
  }
}

const refusal = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: Error) => error.constructor.name,
  );
const symbol = 'BTC/USDT';
const markets = Object.keys(await trader.loadMarkets());
const idOf = (order: object): string => (order as { id: string }).id;
const ids = async (orders: Promise<readonly { id: string }[]>) => (await orders).map(({ id }) => id);

/** What a bot with limit orders does before it is done. */
async function makeMarkets(): Promise<object> {
  const low = await trader.createOrder(symbol, 'limit', 'buy', 0.01, 50_000);
  const high = await trader.createOrder(symbol, 'limit', 'sell', 0.02, 70_000);
  const held = await trader.fetchBalance();
  const open = await ids(trader.fetchOpenOrders(symbol));
  const cancelled = await trader.cancelOrder(idOf(low), symbol);
  const one = await trader.fetchOrder(idOf(high), symbol);
  const gone = await refusal(trader.cancelOrder(idOf(low), symbol));
  await trader.cancelAllOrders(symbol);
  return {
    low,
    heldQuote: held['USDT'],
    heldBase: held['BTC'],
    isOpen: [open.includes(idOf(low)), open.includes(idOf(high))],
    cancelled,
    one,
    gone,
    openAfter: await ids(trader.fetchOpenOrders(symbol)),
    closed: (await ids(trader.fetchClosedOrders(symbol))).length,
    crossing: await trader.createOrder(symbol, 'limit', 'buy', 0.01, 65_000),
    maker: await trader.createOrder(symbol, 'limit', 'sell', 0.01, 61_000, { postOnly: true }),
    withCost: await trader.createMarketBuyOrderWithCost(symbol, 120),
    ticker: await trader.fetchTicker(symbol),
    tickers: Object.keys(await trader.fetchTickers()),
    depositAddress: await trader.fetchDepositAddress('XRP'),
    withdrawal: await trader.withdraw('USDT', 20, 'TXyz', undefined, { network: 'TRC20' }),
    tooDear: await refusal(trader.createOrder(symbol, 'limit', 'buy', 100, 59_000)),
  };
}

const results = {
  markets,
  status: await trader.fetchStatus(),
  buy: await trader.createOrder(symbol, 'market', 'buy', 0.01),
  sell: await trader.createOrder(symbol, 'market', 'sell', 0.01, undefined, { clientOrderId: 'mine-1' }),
  armed: await trader.cancelAllOrdersAfter(60_000, { symbol }),
  deleted: await trader.cancelAllOrdersAfter(0, { symbol }),
  armedForSome: await trader.cancelAllOrdersAfter(60_000, { symbol, types: ['spot'] }),
  deletedWithNull: await trader.cancelAllOrdersAfter(0, { symbol, timeout: null }),
  address: await trader.createDepositAddress('USDT', { network: 'TRC20' }),
  withdrawn: await trader.v4PrivatePostMainAccountWithdrawPay({
    ticker: 'USDT',
    amount: '10',
    address: 'TXyz',
    uniqueId: 'ccxt-1',
    network: 'TRC20',
  }),
  codes: await trader.v4PrivatePostMainAccountCodesMy({ limit: 2 }),
  hashrate: await trader.v4PrivatePostMiningHashrate({ account: 'rig' }),
  pool: await trader.v4PublicGetMiningPool(),
  ...(await makeMarkets()),
  tooMuch: await refusal(trader.createOrder(symbol, 'market', 'sell', 1000)),
  tooShort: await refusal(trader.cancelAllOrdersAfter(1000, { symbol })),
};
process.stdout.write(JSON.stringify(results));
