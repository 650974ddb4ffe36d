import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { read } from '../docs/documents.ts';
import { codeBlocksOf } from '../docs/markdown.ts';
import { recipe } from '../docs/recipes.ts';
import { startProcess } from '../liveness/started.ts';
import { stageFor } from '../process/harness.ts';
import { ROOT } from '../process/program.ts';
import { hostClock } from '../simulator/raw-client.ts';
import { CCXT, npmInstall } from './npm-install.ts';
import { scratch } from './scratch.ts';

const MINUTES_MS = 60_000;
const run = promisify(execFile);
const folder = scratch('ccxt');
let server: SimulatedServer;

beforeAll(async () => {
  await npmInstall(folder, CCXT);
  symlinkSync(ROOT, join(folder, 'node_modules/killswitchd'));
  const listen = { host: '127.0.0.1', port: 0 };
  const exchange = { profile: 'live', newAddresses: true } as const;
  server = await startSimulatedServer({ clock: hostClock, listen, exchange });
}, 5 * MINUTES_MS);
afterAll(() => server?.close());

test(
  'a bot on ccxt runs at the simulated exchange with its base address changed and nothing else',
  async () => {
    const ccxt = pathToFileURL(join(folder, 'node_modules/ccxt/js/ccxt.js')).href;
    const bot = join(import.meta.dirname, 'ccxt-bot.ts');
    const { stdout } = await run(process.execPath, [bot, ccxt, server.url]);
    const symbol = 'BTC/USDT';
    const text = expect.any(String) as string;
    expect(JSON.parse(stdout)).toMatchObject({
      markets: expect.arrayContaining(['BTC/USDT', 'BTC/USDT:USDT']),
      status: { status: 'ok' },
      buy: { id: text, symbol, side: 'buy', amount: 0.01, filled: 0.01, cost: 600 },
      sell: { clientOrderId: 'mine-1', side: 'sell', filled: 0.01, remaining: 0, fee: { cost: 0.6 } },
      armed: { market: 'BTC_USDT', types: null },
      deleted: [],
      armedForSome: { types: ['spot'] },
      deletedWithNull: [],
      address: { currency: 'USDT', address: expect.stringMatching(/^T/) },
      withdrawn: [],
      codes: { total: 42, limit: 2 },
      hashrate: { data: { account: 'rig' } },
      pool: { data: { assets: ['BTC'] } },
      low: { symbol, type: 'limit', side: 'buy', price: 50_000, amount: 0.01, filled: 0, status: 'open' },
      heldQuote: { used: 500.5, free: expect.any(Number) },
      heldBase: { used: 0.02 },
      isOpen: [true, true],
      cancelled: { status: 'canceled' },
      one: { price: 70_000, remaining: 0.02 },
      gone: 'OrderNotFound',
      openAfter: [],
      closed: 4,
      crossing: { status: 'closed', filled: 0.01, cost: 600 },
      maker: { status: 'open', postOnly: true },
      withCost: { side: 'buy', filled: 0.002, cost: 120 },
      ticker: { symbol, last: 60_000, bid: expect.any(Number), ask: expect.any(Number) },
      tickers: expect.arrayContaining(['BTC/USDT', 'ETH/USDT']),
      depositAddress: { currency: 'XRP', address: expect.stringMatching(/^rsimulated/), tag: text },
      withdrawal: { id: text },
      tooDear: 'InsufficientFunds',
      tooMuch: 'InsufficientFunds',
      tooShort: 'ExchangeError',
    });
    expect(server.exchange.timers()).toEqual([]);
    const kinds = server.exchange.log.since(0).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'timer-deleted')).toHaveLength(2);
    expect(server.exchange.marketOrders().map(({ side }) => side)).toEqual(['buy', 'sell', 'buy', 'buy']);
    expect(server.exchange.withdrawals()).toMatchObject([
      { uniqueId: 'ccxt-1', amount: '10' },
      { amount: '16.8', fee: '3.2' },
    ]);
  },
  MINUTES_MS,
);

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
  const control = `unix:${join(stage.directory, 'control.sock')}`;
  const exchange = await stage.exchangeProcess(['--listen', '127.0.0.1:0', '--profile', 'live']);
  const answer = await fetch(`${exchange.url}/simulator/keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([{ key: 'bot-key', secret: 'bot-secret', permissions: ['trade'] }]),
  });
  expect(answer.status).toBe(201);
  await stage.daemon({
    exchange: exchange.url,
    markets: [{ market: 'BTC_USDT', timeoutSeconds: 5 }],
    config: { liveness: { mode: 'beat', ttlSeconds: 5 }, control: { listen: [control] } },
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
  writeFileSync(
    file,
    program.replace(made, (line) => `${line}\n${redirect}`),
  );
  const bot = startProcess(context, process.execPath, [file], {
    KILLSWITCHD_CONTROL: control,
    BOT_API_KEY: 'bot-key',
    BOT_API_SECRET: 'bot-secret',
  });
  await exchange.event('order-placed', 60_000).catch((error: Error) => {
    throw new Error(`${error.message}: ${bot.output()}`);
  });
  bot.signal('SIGKILL');
  await exchange.event('timer-fired', 30_000);
});
