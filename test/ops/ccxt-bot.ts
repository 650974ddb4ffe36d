/**
 * A bot on ccxt, which comes from the registry when the test runs and not with this repository. `node ccxt-bot.ts
 * CCXT_URL EXCHANGE_URL` does what a bot does and prints what came of it as JSON. Nothing but the base address differs
 * from a bot at the live exchange.
 */
type Answer = Readonly<Record<string, unknown>>;
type Trader = Readonly<Record<string, (...given: readonly unknown[]) => Promise<Answer>>>;
type Urls = Readonly<Record<string, Record<string, string>>>;
interface Ccxt {
  readonly default: Readonly<Record<string, new (options: object) => Trader & { urls: { api: Urls } }>>;
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
/** Calls a method of ccxt by its name. */
const call = async (name: string, ...given: readonly unknown[]): Promise<Answer> => {
  const answer = await trader[name]?.(...given);
  if (answer === undefined) throw new Error(`ccxt has no ${name}`);
  return answer;
};
const ids = async (...asked: readonly [string, string]) =>
  Object.values(await call(...asked)).map((order) => (order as Answer)['id']);

const refusal = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: Error) => error.constructor.name,
  );
const symbol = 'BTC/USDT';
const markets = Object.keys(await call('loadMarkets'));

/** What a bot with limit orders does before it is done. */
async function makeMarkets(): Promise<object> {
  const low = await call('createOrder', symbol, 'limit', 'buy', 0.01, 50_000);
  const high = await call('createOrder', symbol, 'limit', 'sell', 0.02, 70_000);
  const held = await call('fetchBalance');
  const open = await ids('fetchOpenOrders', symbol);
  const cancelled = await call('cancelOrder', low['id'], symbol);
  const one = await call('fetchOrder', high['id'], symbol);
  const gone = await refusal(call('cancelOrder', low['id'], symbol));
  await call('cancelAllOrders', symbol);
  return {
    low,
    heldQuote: held['USDT'],
    heldBase: held['BTC'],
    isOpen: [open.includes(low['id']), open.includes(high['id'])],
    cancelled,
    one,
    gone,
    openAfter: await ids('fetchOpenOrders', symbol),
    closed: (await ids('fetchClosedOrders', symbol)).length,
    crossing: await call('createOrder', symbol, 'limit', 'buy', 0.01, 65_000),
    maker: await call('createOrder', symbol, 'limit', 'sell', 0.01, 61_000, { postOnly: true }),
    withCost: await call('createMarketBuyOrderWithCost', symbol, 120),
    ticker: await call('fetchTicker', symbol),
    tickers: Object.keys(await call('fetchTickers')),
    depositAddress: await call('fetchDepositAddress', 'XRP'),
    withdrawal: await call('withdraw', 'USDT', 20, 'TXyz', undefined, { network: 'TRC20' }),
    tooDear: await refusal(call('createOrder', symbol, 'limit', 'buy', 100, 59_000)),
  };
}

const results = {
  markets,
  status: await call('fetchStatus'),
  buy: await call('createOrder', symbol, 'market', 'buy', 0.01),
  sell: await call('createOrder', symbol, 'market', 'sell', 0.01, undefined, { clientOrderId: 'mine-1' }),
  armed: await call('cancelAllOrdersAfter', 60_000, { symbol }),
  deleted: await call('cancelAllOrdersAfter', 0, { symbol }),
  armedForSome: await call('cancelAllOrdersAfter', 60_000, { symbol, types: ['spot'] }),
  deletedWithNull: await call('cancelAllOrdersAfter', 0, { symbol, timeout: null }),
  address: await call('createDepositAddress', 'USDT', { network: 'TRC20' }),
  withdrawn: await call('v4PrivatePostMainAccountWithdrawPay', {
    ticker: 'USDT',
    amount: '10',
    address: 'TXyz',
    uniqueId: 'ccxt-1',
    network: 'TRC20',
  }),
  codes: await call('v4PrivatePostMainAccountCodesMy', { limit: 2 }),
  hashrate: await call('v4PrivatePostMiningHashrate', { account: 'rig' }),
  pool: await call('v4PublicGetMiningPool'),
  ...(await makeMarkets()),
  tooMuch: await refusal(call('createOrder', symbol, 'market', 'sell', 1000)),
  tooShort: await refusal(call('cancelAllOrdersAfter', 1000, { symbol })),
};
process.stdout.write(JSON.stringify(results));
