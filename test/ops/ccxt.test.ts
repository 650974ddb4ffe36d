import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startExchange } from '../../src/library/simulator.ts';
import type { SimulatedServer } from '../../src/simulator/server.ts';
import { read } from '../docs/documents.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { recipe } from '../docs/sections.ts';
import { startProcess } from '../liveness/started.ts';
import { stageFor } from '../process/harness.ts';
import { ROOT } from '../process/program.ts';
import { CCXT, npmInstall } from './npm-install.ts';
import { scratch } from './scratch.ts';

const MINUTES_MS = 60_000;
const run = promisify(execFile);
const folder = scratch();
let server: SimulatedServer;

beforeAll(async () => {
  await npmInstall(folder, CCXT);
  symlinkSync(ROOT, join(folder, 'node_modules/killswitchd'));
  server = await startExchange({ exchange: { profile: 'live', newAddresses: true } });
}, 5 * MINUTES_MS);
afterAll(() => server?.close());

/** What ccxt makes of a bot's calls. It comes from the registry when the test runs, and its types with it. */
type Answer = Readonly<Record<string, unknown>>;
type Trader = Readonly<Record<string, (...given: readonly unknown[]) => Promise<Answer>>>;
interface Ccxt {
  readonly default: {
    readonly whitebit: new (
      options: object,
    ) => Trader & { urls: { api: Readonly<Record<string, Record<string, string>>> } };
  };
}

test('a bot on ccxt runs at the simulated exchange with its base address changed and nothing else', {
  timeout: MINUTES_MS,
}, async () => {
  const file = pathToFileURL(join(folder, 'node_modules/ccxt/js/ccxt.js')).href;
  const { default: ccxt } = (await import(file)) as Ccxt;
  const trader = new ccxt.whitebit({ apiKey: 'demo-key', secret: 'demo-secret' });
  for (const addresses of Object.values(trader.urls.api)) {
    for (const [kind, address] of Object.entries(addresses)) {
      addresses[kind] = address.replace(new URL(address).origin, server.url);
    }
  }
  /** Calls a method of ccxt by its name: its answer, or the name of its error, is as expected. */
  const gives = async (expected: unknown, name: string, ...given: readonly unknown[]): Promise<Answer> => {
    const called = trader[name]?.(...given) ?? Promise.reject(new Error(`ccxt has no ${name}`));
    const answer: unknown = await called.catch((error: Error) => error.constructor.name);
    expect({ [name]: answer }).toMatchObject({ [name]: expected });
    return answer as Answer;
  };
  const symbol = 'BTC/USDT';
  const text = expect.any(String) as string;
  const number = expect.any(Number) as number;
  await gives({ 'BTC/USDT': {}, 'BTC/USDT:USDT': {} }, 'loadMarkets');
  await gives({ status: 'ok' }, 'fetchStatus');
  const bought = { id: text, symbol, side: 'buy', amount: 0.01, filled: 0.01, cost: 600 };
  await gives(bought, 'createOrder', symbol, 'market', 'buy', 0.01);
  const sold = { clientOrderId: 'mine-1', side: 'sell', filled: 0.01, remaining: 0, fee: { cost: 0.6 } };
  const own = { clientOrderId: 'mine-1' };
  await gives(sold, 'createOrder', symbol, 'market', 'sell', 0.01, undefined, own);
  await gives({ market: 'BTC_USDT', types: null }, 'cancelAllOrdersAfter', 60_000, { symbol });
  await gives([], 'cancelAllOrdersAfter', 0, { symbol });
  await gives({ types: ['spot'] }, 'cancelAllOrdersAfter', 60_000, { symbol, types: ['spot'] });
  await gives([], 'cancelAllOrdersAfter', 0, { symbol, timeout: null });
  const address = { currency: 'USDT', address: expect.stringMatching(/^T/) as string };
  await gives(address, 'createDepositAddress', 'USDT', { network: 'TRC20' });
  const payout = { ticker: 'USDT', amount: '10', address: 'TXyz', uniqueId: 'ccxt-1', network: 'TRC20' };
  await gives([], 'v4PrivatePostMainAccountWithdrawPay', payout);
  await gives({ total: 42, limit: 2 }, 'v4PrivatePostMainAccountCodesMy', { limit: 2 });
  await gives({ data: { account: 'rig' } }, 'v4PrivatePostMiningHashrate', { account: 'rig' });
  await gives({ data: { assets: ['BTC'] } }, 'v4PublicGetMiningPool');

  const resting = {
    symbol,
    type: 'limit',
    side: 'buy',
    price: 50_000,
    amount: 0.01,
    filled: 0,
    status: 'open',
  };
  const low = await gives(resting, 'createOrder', symbol, 'limit', 'buy', 0.01, 50_000);
  const high = await gives({}, 'createOrder', symbol, 'limit', 'sell', 0.02, 70_000);
  await gives({ USDT: { used: 500.5, free: number }, BTC: { used: 0.02 } }, 'fetchBalance');
  const open = [low, high].map(({ id }) => expect.objectContaining({ id }) as Answer);
  await gives(expect.arrayContaining(open), 'fetchOpenOrders', symbol);
  await gives({ status: 'canceled' }, 'cancelOrder', low['id'], symbol);
  await gives({ price: 70_000, remaining: 0.02 }, 'fetchOrder', high['id'], symbol);
  await gives('OrderNotFound', 'cancelOrder', low['id'], symbol);
  await gives({}, 'cancelAllOrders', symbol);
  await gives([], 'fetchOpenOrders', symbol);
  await gives([{}, {}, {}, {}], 'fetchClosedOrders', symbol);
  const crossing = { status: 'closed', filled: 0.01, cost: 600 };
  await gives(crossing, 'createOrder', symbol, 'limit', 'buy', 0.01, 65_000);
  const maker = { status: 'open', postOnly: true };
  await gives(maker, 'createOrder', symbol, 'limit', 'sell', 0.01, 61_000, { postOnly: true });
  await gives({ side: 'buy', filled: 0.002, cost: 120 }, 'createMarketBuyOrderWithCost', symbol, 120);
  await gives({ symbol, last: 60_000, bid: number, ask: number }, 'fetchTicker', symbol);
  await gives({ 'BTC/USDT': {}, 'ETH/USDT': {} }, 'fetchTickers');
  const deposit = { currency: 'XRP', address: expect.stringMatching(/^rsimulated/) as string, tag: text };
  await gives(deposit, 'fetchDepositAddress', 'XRP');
  await gives({ id: text }, 'withdraw', 'USDT', 20, 'TXyz', undefined, { network: 'TRC20' });
  await gives('InsufficientFunds', 'createOrder', symbol, 'limit', 'buy', 100, 59_000);
  await gives('InsufficientFunds', 'createOrder', symbol, 'market', 'sell', 1000);
  await gives('ExchangeError', 'cancelAllOrdersAfter', 1000, { symbol });
  expect(server.exchange.timers()).toEqual([]);
  const kinds = server.exchange.log.since(0).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'timer-deleted')).toHaveLength(2);
  expect(server.exchange.marketOrders().map(({ side }) => side)).toEqual(['buy', 'sell', 'buy', 'buy']);
  expect(server.exchange.withdrawals()).toMatchObject([
    { uniqueId: 'ccxt-1', amount: '10' },
    { amount: '16.8', fee: '3.2' },
  ]);
});

test(
  'the lines that docs/http.md shows for ccxt buy, arm a timer and delete it',
  async () => {
    const [block] = codeBlocksOf(read('docs/http.md'), 'js').filter((text) => text.includes("from 'ccxt'"));
    expect(block).toContain('http://127.0.0.1:17480');
    const bot = join(folder, 'shown.mjs');
    writeFileSync(bot, String(block).replaceAll('http://127.0.0.1:17480', server.url));
    const { log } = server.exchange;
    const before = log.since(0).at(-1)?.seq ?? 0;
    const asked = server.requests().at(-1)?.seq ?? 0;
    await run(process.execPath, [bot]);
    expect(server.requests(asked).map(({ operation }) => operation)).toContain('ticker');
    const kinds = log.since(before).map(({ kind }) => kind);
    expect(kinds).toEqual(['order-filled', 'timer-armed', 'timer-deleted']);
  },
  MINUTES_MS,
);

test('the ccxt bot in Node quotes at the simulated exchange while it is armed, and loses its orders when it is killed', {
  timeout: 3 * MINUTES_MS,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchangeProcess(['--profile', 'live']);
  await exchange.addKeys({ key: 'bot-key', secret: 'bot-secret', permissions: ['trade'] });
  const { socket } = await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'BTC_USDT', timeoutSeconds: 5 }],
    control: true,
    config: { liveness: { mode: 'beat', ttlSeconds: 5 } },
  });
  const [program = ''] = recipe('ccxt in Node', 'js');
  const made = /^const exchange = .*$/m;
  const redirect = [
    'for (const addresses of Object.values(exchange.urls.api))',
    '  for (const [kind, address] of Object.entries(addresses))',
    `    addresses[kind] = address.replace(new URL(address).origin, '${exchange.url}');`,
  ].join('\n');
  expect(program).toMatch(made);
  const file = join(folder, 'bot.mjs');
  const redirected = program.replace(made, (line) => `${line}\n${redirect}`);
  writeFileSync(file, redirected);
  const bot = startProcess(context, process.execPath, [file], {
    KILLSWITCHD_CONTROL: socket,
    BOT_API_KEY: 'bot-key',
    BOT_API_SECRET: 'bot-secret',
  });
  await exchange.event('order-placed', 60_000).catch((error: Error) => {
    throw new Error(`${error.message}: ${bot.output()}`);
  });
  bot.signal('SIGKILL');
  await exchange.event('timer-fired', 30_000);
});
