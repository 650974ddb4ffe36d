import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Edge } from '../../src/cli/edge.ts';
import { start } from '../cli/stage.ts';
import { control, ping, send, signed } from './raw-client.ts';
import { PATHS } from './trader.ts';

interface Run {
  readonly lines: string[];
  readonly errors: string[];
  readonly exits: number[];
  readonly url: string;
  readonly signal: (name: 'SIGTERM' | 'SIGINT') => void;
}

const folder = mkdtempSync(join(tmpdir(), 'exchange-command-'));
const running: Run[] = [];

afterEach(() => {
  for (const run of running.splice(0)) run.signal('SIGTERM');
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs the command as a shell would, without a process of its own. */
async function run(args: readonly string[], env: Edge['env'] = {}): Promise<Run> {
  const { out: lines, err: errors, exits, ended, signal } = start(['exchange', ...args], { env });
  await ended;
  const started = { lines, errors, exits, url: lines[0] ?? '', signal };
  running.push(started);
  return started;
}

const FREE = ['--listen', '127.0.0.1:0'];

test('the first line is the address, and the exchange answers there', async () => {
  const { lines, url } = await run(FREE);
  expect(lines[0]).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(lines.slice(1).join('\n')).toContain('the key demo-key with the secret demo-secret');
  expect(lines.slice(1).join('\n')).toContain('the access token demo-token');
  const advice = 'A library for the live exchange, such as ccxt, wants --profile live.';
  expect(lines).toContain(advice);
  expect((await run([...FREE, '--profile', 'live'])).lines).not.toContain(advice);
  expect(await send(url, ping)).toMatchObject({ status: 200, body: '["pong"]' });
});

test('the key and secret of the environment are accepted, and the secret is not shown', async () => {
  const env = { KILLSWITCHD_API_KEY: 'my-key', KILLSWITCHD_API_SECRET: 'my-own-secret' };
  const { lines, url } = await run(FREE, env);
  const own = { key: 'my-key', secret: 'my-own-secret' };
  expect((await send(url, signed({ market: 'BTC_USDT', timeout: '60' }, own))).status).toBe(200);
  expect((await send(url, signed({ market: 'BTC_USDT', timeout: '60' }))).status).toBe(401);
  expect(lines.join('\n')).not.toContain('my-own-secret');
});

test('key and secret come from files where the environment of the daemon names some', async () => {
  const [key, secret] = ['file-key', 'file-secret'];
  writeFileSync(join(folder, 'key'), `${key}\n`, { mode: 0o400 });
  writeFileSync(join(folder, 'secret'), secret, { mode: 0o400 });
  const { url, lines } = await run(FREE, {
    KILLSWITCHD_API_KEY_FILE: join(folder, 'key'),
    KILLSWITCHD_API_SECRET_FILE: join(folder, 'secret'),
  });
  const arm = signed({ market: 'BTC_USDT', timeout: '60' }, { key, secret });
  expect((await send(url, arm)).status).toBe(200);
  expect(lines.join('\n')).not.toMatch(/demo-key|file-secret/);
});

test('the profile and the list of markets are those of the flags', async () => {
  const { url, lines } = await run([...FREE, '--profile', 'live', '--markets', 'BTC_USDT,ETH_USDT']);
  expect((await send(url, signed({ market: 'BTC_USDT', timeout: null }))).body).toBe('[]');
  expect((await send(url, signed({ market: 'SOL_USDT', timeout: '60' }))).status).toBe(422);
  expect(lines.at(-1)).toContain('kill-switch SOL_USDT: refused with 422, code 31');
  expect(lines.join('\n')).toContain('Resting orders: 8, in BTC_USDT, ETH_USDT.');
});

test('balances, limits and a clock that stands still are those of the flags', async () => {
  const args = ['--balances', 'USDT=1000,BTC=0.5', '--limits', 'ping=1', '--manual-time'];
  const { url } = await run([...FREE, ...args]);
  const { value } = await control(url, 'GET', '/simulator/balances');
  expect(value).toMatchObject({ accounts: { main: { USDT: '1000', BTC: '0.5' } } });
  expect(value).not.toHaveProperty('accounts.main.ETH');
  const statuses = [];
  for (const ms of [0, 9999, 1]) {
    if (ms > 0) await control(url, 'POST', '/simulator/advance', { ms });
    statuses.push((await send(url, ping)).status);
  }
  expect(statuses).toEqual([200, 429, 200]);
});

test('a token file opens /simulator, and a short token is refused without being shown', async () => {
  const file = join(folder, 'token');
  writeFileSync(file, 'long-enough-to-be-a-token\n', { mode: 0o400 });
  const { url, exits } = await run([...FREE, '--token-file', file]);
  expect(exits).toEqual([]);
  expect((await control(url, 'GET', '/simulator/state')).status).toBe(200);
  const short = join(folder, 'short-token');
  writeFileSync(short, 'short', { mode: 0o400 });
  const refused = await run([...FREE, '--token-file', short]);
  expect(refused.exits).toEqual([64]);
  expect(refused.errors).toEqual([expect.stringContaining('found 5 characters; allowed: at least 16')]);
});

test('arming and deleting are told in plain words, renewals are not', async () => {
  const { url, lines } = await run(FREE);
  const before = lines.length;
  await send(url, signed({ market: 'BTC_USDT', timeout: '60', types: ['spot'] }));
  await send(url, signed({ market: 'BTC_USDT', timeout: '60', types: ['spot'] }));
  await send(url, signed({ market: 'BTC_USDT', timeout: null }));
  const told = lines.slice(before).map((line) => line.replace(/\d\d:\d\d:\d\dZ/g, 'TIME'));
  expect(told).toEqual([
    'TIME BTC_USDT: timer armed for 60 s; unless it is renewed it cancels spot orders at TIME',
    'TIME BTC_USDT: timer deleted; its orders stay',
  ]);
});

test('orders and withdrawals are told in plain words', async () => {
  const { url, lines } = await run(FREE);
  const before = lines.length;
  const order = { market: 'BTC_USDT', side: 'sell', amount: '0.5' };
  const withdrawal = { ticker: 'BTC', amount: '1', address: 'x', unique_id: 'w\u001b[2J' };
  await send(url, signed(order, { path: PATHS.stockMarket }));
  const limit = { market: 'BTC_USDT', side: 'buy', amount: '0.1', price: '60000' };
  await send(url, signed(limit, { path: '/api/v4/order/new' }));
  await send(url, signed(withdrawal, { path: PATHS.withdrawPay }));
  expect(lines.slice(before).map((line) => line.slice('12:00:00Z '.length))).toEqual([
    expect.stringMatching(/^BTC_USDT: order \d+ sold 0\.5 for 30000, fee 30$/),
    expect.stringMatching(/^BTC_USDT: order \d+ bought 0\.1 for 6000, fee 6$/),
    'BTC: withdrawal w?[2J of 1, fee 0.0004',
  ]);
});

test('new addresses are created where the flag allows it, and follow from the seed', async () => {
  const create = async (...flags: string[]) => {
    const { url } = await run([...FREE, ...flags]);
    return send(url, signed({ ticker: 'BTC' }, { path: PATHS.newAddress }));
  };
  expect((await create()).status).toBe(403);
  const [first, second, third] = await Promise.all(
    ['1', '1', '2'].map((seed) => create('--enable-new-addresses', '--seed', seed)),
  );
  expect(first).toMatchObject({ status: 200, body: second?.body });
  expect(third?.body).not.toBe(first?.body);
});

test('a newcomer finds orders of every type, which rest around the price at which market orders are filled', async () => {
  const { url } = await run(FREE);
  const { orders } = (await control(url, 'GET', '/simulator/state')).value as {
    orders: { market: string; type: string; side: string; price: string }[];
  };
  expect(new Set(orders.map(({ type }) => type))).toEqual(new Set(['spot', 'margin', 'futures']));
  const prices = (await control(url, 'GET', '/simulator/prices')).value as Record<string, string>;
  for (const { market, side, price } of orders.filter(({ market: name }) => name in prices)) {
    const distance = Number(price) / Number(prices[market]);
    expect(distance).toBeCloseTo(side === 'buy' ? 0.9 : 1.1, 6);
  }
});

test('every event is in the event log file as soon as it has happened', async () => {
  const file = join(folder, 'events.jsonl');
  const { url } = await run([...FREE, '--orders', 'none', '--event-log', file]);
  await send(url, signed({ market: 'BTC_USDT', timeout: '60' }));
  const events = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(events.map((line) => JSON.parse(line) as object)).toMatchObject([{ seq: 1, kind: 'timer-armed' }]);
});

test('orders come from a file', async () => {
  const file = join(folder, 'orders.json');
  writeFileSync(file, JSON.stringify({ market: 'XRP_USDT', type: 'spot', side: 'buy', count: 3 }));
  const { lines } = await run([...FREE, '--orders', file]);
  expect(lines.join('\n')).toContain('Resting orders: 3, in XRP_USDT.');
  writeFileSync(file, '[{"market":"XRP_USDT","type":"stop"}]');
  const wrong = await run([...FREE, '--orders', file]);
  expect(wrong.exits).toEqual([64]);
  expect(wrong.errors[0]).toContain('order 1: type is "stop"; allowed: spot, margin, futures');
});

test.each([
  ['{"key":"k","secret":"my-secret"', ' at line 1 column 32'],
  ['{"key":"k","secret":my-secret}', ''],
  ['my-secret', ''],
])('the file %s is refused, and nothing in it is repeated', async (text, place) => {
  const file = join(folder, 'broken.json');
  writeFileSync(file, text);
  const { exits, errors } = await run([...FREE, '--keys', file]);
  expect(exits).toEqual([64]);
  expect(errors).toEqual([`killswitchd exchange: --keys: cannot read ${file} as JSON: it is none${place}`]);
});

describe('more API keys', () => {
  const file = join(folder, 'keys.json');
  const SECRET = 'the-secret-of-shard-1';
  const runWith = (keys: unknown, env: Edge['env'] = {}) => {
    writeFileSync(file, JSON.stringify(keys));
    return run([...FREE, '--keys', file], env);
  };
  const arm = (url: string, as: { key: string; secret: string }, nonce?: string) =>
    send(url, signed({ market: 'BTC_USDT', timeout: '60', ...(nonce === undefined ? {} : { nonce }) }, as));

  test('come from a file, and each has nonces of its own and the account of the first', async () => {
    const { url, lines } = await runWith([{ key: 'shard-1', secret: SECRET }]);
    const own = { key: 'shard-1', secret: SECRET };
    const demo = { key: 'demo-key', secret: 'demo-secret' };
    const nonce = String(Date.now() + 60_000);
    expect((await arm(url, demo, nonce)).status).toBe(200);
    expect((await arm(url, own, nonce)).status).toBe(200);
    expect((await arm(url, own, nonce)).status).toBe(429);
    expect((await arm(url, { key: 'shard-1', secret: 'demo-secret' })).status).toBe(401);
    const { timers } = (await control(url, 'GET', '/simulator/state')).value as { timers: unknown[] };
    expect(timers).toHaveLength(1);
    expect(lines.join('\n')).toContain('the key demo-key with the secret demo-secret, the keys shard-1, and');
    expect(lines.join('\n')).not.toContain(SECRET);
  });

  test('may have fewer permissions, and an account apart', async () => {
    const { url } = await runWith([
      { key: 'reads', secret: SECRET, permissions: ['info'] },
      { key: 'other', secret: SECRET, account: 'second' },
    ]);
    expect((await arm(url, { key: 'reads', secret: SECRET })).status).toBe(403);
    expect((await arm(url, { key: 'other', secret: SECRET })).status).toBe(200);
    const { timers } = (await control(url, 'GET', '/simulator/state')).value as { timers: unknown[] };
    expect(timers).toMatchObject([{ account: 'second' }]);
  });

  test.each<[string, string]>([
    ['["a"]', 'key 1: expected an object with key, secret, account, permissions'],
    ['[{"key":"a","secret":""}]', 'key 1: secret is not of its form; expected 1 to 255 plain letters'],
    ['[{"key":"a","secret":"S","account":""}]', 'key 1: account is ""; expected a text such as "second-key"'],
    [
      '[{"key":"a","secret":"S","permissions":["trades"]}]',
      'key 1: permissions is ["trades"]; expected an array of info, trade, deposit, withdraw',
    ],
    ['[{"key":"a","secret":"S"},{"key":"a","secret":"S"}]', 'key 2: "a" is accepted already'],
    ['[{"key":"demo-key","secret":"S"}]', 'key 1: "demo-key" is accepted already'],
  ])('are refused where they make no sense, without their secret: %s', async (keys, problem) => {
    const { exits, errors } = await runWith(JSON.parse(keys.replaceAll('"S"', `"${SECRET}"`)));
    expect(exits).toEqual([64]);
    expect(errors).toEqual([`killswitchd exchange: --keys: ${file}: ${problem}`]);
  });
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it with 0 at once, whatever is open', async (name) => {
  const { url, exits, signal } = await run(FREE);
  await control(url, 'POST', '/simulator/faults', { kind: 'hang', mode: 'drop' });
  const { lastSeq } = (await control(url, 'GET', '/simulator/state')).value as { lastSeq: number };
  const hanging = send(url, ping).catch((error: NodeJS.ErrnoException) => error.code);
  await control(url, 'GET', `/simulator/events?since=${lastSeq}&wait=5000`);
  signal(name);
  expect(await hanging).toBe('ECONNRESET');
  await expect.poll(() => exits).toEqual([0]);
});

test.each<[string[], RegExp]>([
  [['--listen', '17480'], /--listen: found "17480"; allowed: HOST:PORT/],
  [['--listen', '0.0.0.0:0'], /--listen: other hosts can reach 0\.0\.0\.0; .*--allow-remote/],
  [['--listen', '127.example.com:0'], /--listen: other hosts can reach 127\.example\.com/],
  [['--markets', 'BTC_USDT,eth-usdt'], /--markets: found "eth-usdt"; allowed: .*; did you mean ETH_USDT\?/],
  [['--seed', 'x'], /--seed: found "x"; allowed: a whole number from 0/],
  [['--orders', '/nonexistent.json'], /--orders: cannot read \/nonexistent\.json as JSON/],
  [['--keys', '/nonexistent.json'], /--keys: cannot read \/nonexistent\.json as JSON/],
  [['--balances', 'USDT:5'], /--balances: found "USDT:5"; allowed: NAME=AMOUNT with commas between/],
  [['--balances', 'usdt=5'], /--balances: found "usdt"; allowed: a ticker such as USDT/],
  [['--limits', 'ping=5,ping=6'], /--limits: found "ping" twice/],
  [['--limits', 'pin=5'], /--limits: found "pin"; allowed: .*; did you mean ping\?/],
  [['--limits', 'syncKillSwitch=5'], /did you mean kill-switch\?/],
  [['--limits', 'ping=0'], /--limits: ping is 0; allowed: a whole number from 1/],
  [['--token-file', '/nonexistent'], /--token-file: .*/],
  [['--event-log', '/nonexistent/log'], /--event-log: cannot append to \/nonexistent\/log/],
])('the flags %j are refused with 64 and a message', async (args, message) => {
  const { exits, errors, lines } = await run([...FREE, ...args]);
  expect([exits, lines]).toEqual([[64], []]);
  expect(errors).toEqual([expect.stringMatching(message)]);
});

test('half a key pair in the environment is refused with 78', async () => {
  const { exits, errors } = await run(FREE, { KILLSWITCHD_API_KEY: 'my-key' });
  expect(exits).toEqual([78]);
  expect(errors).toEqual([
    expect.stringContaining('KILLSWITCHD_API_SECRET: missing; set KILLSWITCHD_API_SECRET_FILE'),
  ]);
});

test('a port in use ends it with 69 and one message', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, '127.0.0.1', resolve);
  });
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { exits, errors, lines } = await run(['--listen', `127.0.0.1:${port}`]);
  expect([exits, lines]).toEqual([[69], []]);
  expect(errors).toEqual([
    `killswitchd exchange: cannot listen on 127.0.0.1:${port}: the port is already in use; choose another --listen, for example 127.0.0.1:0 for any free port`,
  ]);
  taken.close();
});
