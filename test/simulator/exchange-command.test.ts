import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { Edge } from '../../src/cli/edge.ts';
import { start } from '../cli/stage.ts';
import { fileOf } from '../config/fixture.ts';
import { control, ping, send, signed } from './raw-client.ts';
import { PATHS } from './trader.ts';

/** Runs the command as a shell would, without a process of its own, at any free port where it is told no other. */
async function run(args: readonly string[] = [], env: Edge['env'] = {}) {
  const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
  const { out: lines, err: errors, exits, ended, signal } = start(['exchange', ...listen, ...args], { env });
  await ended;
  onTestFinished(() => signal('SIGTERM'));
  const [url = ''] = lines;
  const known = lines.length;
  return {
    lines,
    errors,
    exits,
    url,
    signal,
    /** The lines about what has happened since the start. */
    told: () => lines.slice(known).map((line) => line.replace(/\d\d:\d\d:\d\dZ/g, 'TIME')),
    ask: (path: string, fields: object) => send(url, signed(fields, { path })),
    arm: (how?: Parameters<typeof signed>[1], more: object = {}) =>
      send(url, signed({ market: 'BTC_USDT', timeout: '60', ...more }, how)),
    get: async (path: string) => (await control(url, 'GET', `/simulator/${path}`)).value,
  };
}

test('the first line is the address, and the exchange answers there', async () => {
  const { lines, url } = await run();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(lines.join('\n')).toContain('the key demo-key with the secret demo-secret');
  expect(lines.join('\n')).toContain('the access token demo-token');
  const advice = 'A library for the live exchange, such as ccxt, wants --profile live.';
  expect(lines).toContain(advice);
  expect((await run(['--profile', 'live'])).lines).not.toContain(advice);
  expect(await send(url, ping)).toMatchObject({ status: 200, body: '["pong"]' });
});

test('key and secret of the environment, or of files that it names, are accepted and not shown, and half of a pair is refused', async () => {
  const own = { key: 'my-key', secret: 'my-own-secret' };
  const files = { KILLSWITCHD_API_KEY_FILE: fileOf(`${own.key}\n`) };
  for (const env of [
    { KILLSWITCHD_API_KEY: own.key, KILLSWITCHD_API_SECRET: own.secret },
    { ...files, KILLSWITCHD_API_SECRET_FILE: fileOf(own.secret) },
  ]) {
    const { lines, arm } = await run([], env);
    expect([(await arm(own)).status, (await arm()).status]).toEqual([200, 401]);
    expect(lines.join('\n')).not.toMatch(/demo-key|my-own-secret/);
  }
  const { exits, errors } = await run([], { KILLSWITCHD_API_KEY: own.key });
  const half = 'KILLSWITCHD_API_SECRET: missing; set KILLSWITCHD_API_SECRET_FILE';
  expect([exits, errors]).toEqual([[78], [expect.stringContaining(half)]]);
});

test('profile, markets, orders and the event log are those of the flags', async () => {
  const file = `${fileOf('')}.jsonl`;
  const args = ['--profile', 'live', '--markets', 'BTC_USDT,ETH_USDT', '--event-log', file];
  const { lines, arm } = await run(args);
  expect((await arm({}, { timeout: null })).body).toBe('[]');
  expect((await arm({}, { market: 'SOL_USDT' })).status).toBe(422);
  expect(lines.at(-1)).toContain('kill-switch SOL_USDT: refused with 422, code 31');
  expect(lines.join('\n')).toContain('Resting orders: 8, in BTC_USDT, ETH_USDT.');
  expect(readFileSync(file, 'utf8').trim().split('\n').at(-1)).toContain('"kind":"request-refused"');
  const order = '{"market":"XRP_USDT","type":"spot","side":"buy","count":3}';
  const own = await run(['--orders', fileOf(order)]);
  expect(own.lines.join('\n')).toContain('Resting orders: 3, in XRP_USDT.');
});

test('balances, limits and a clock that stands still are those of the flags', async () => {
  const args = ['--balances', 'USDT=1000,BTC=0.5', '--limits', 'ping=1', '--manual-time'];
  const { url, get } = await run(args);
  expect(await get('balances')).toHaveProperty('accounts', { main: { USDT: '1000', BTC: '0.5' } });
  const statuses = [];
  for (const ms of [0, 9999, 1]) {
    if (ms > 0) await control(url, 'POST', '/simulator/advance', { ms });
    statuses.push((await send(url, ping)).status);
  }
  expect(statuses).toEqual([200, 429, 200]);
});

test('a token file opens /simulator', async () => {
  const { get } = await run(['--token-file', fileOf('long-enough-to-be-a-token\n')]);
  expect(await get('state')).toHaveProperty('timers');
});

test('what happens is told in plain words: renewals are not, a refusal once, and nothing controls the terminal', async () => {
  const { url, ask, told, arm } = await run(['--manual-time', '--orders', 'none']);
  for (const timeout of ['60', '60', null]) await arm({}, { timeout, types: ['spot'] });
  await ask(PATHS.stockMarket, { market: 'BTC_USDT', side: 'sell', amount: '0.5' });
  await ask('/api/v4/order/new', { market: 'BTC_USDT', side: 'buy', amount: '0.1', price: '60000' });
  await ask(PATHS.withdrawPay, { ticker: 'BTC', amount: '1', address: 'x', unique_id: 'w\u001b[2J' });
  const order = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' };
  await control(url, 'POST', '/simulator/orders', order);
  await arm({}, { timeout: '5' });
  await control(url, 'POST', '/simulator/advance', { ms: 6000 });
  for (let times = 0; times < 3; times += 1) await arm({}, { market: 'A\u001b[2J' });
  expect(told()).toEqual([
    'TIME BTC_USDT: timer armed for 60 s; unless it is renewed it cancels spot orders at TIME',
    'TIME BTC_USDT: timer deleted; its orders stay',
    'TIME BTC_USDT: order 1 sold 0.5 for 30000, fee 30',
    'TIME BTC_USDT: order 2 bought 0.1 for 6000, fee 6',
    'TIME BTC: withdrawal w?[2J of 1, fee 0.0004',
    'TIME BTC_USDT: timer armed for 5 s; unless it is renewed it cancels all orders at TIME',
    'TIME time advanced by 6 s',
    'TIME BTC_USDT: THE TIMER FIRED; orders cancelled: 1',
    'TIME BTC_USDT: spot order 3 cancelled by the kill-switch',
    'TIME kill-switch A?[2J: refused with 422, code 31: Validation failed: Market is not available.',
  ]);
});

test('new addresses are created where the flag allows it, and follow from the seed', async () => {
  const create = async (...flags: string[]) => {
    const { ask } = await run(flags);
    return ask(PATHS.newAddress, { ticker: 'BTC' });
  };
  expect((await create()).status).toBe(403);
  const [first, second, third] = await Promise.all(
    ['1', '1', '2'].map((seed) => create('--enable-new-addresses', '--seed', seed)),
  );
  expect(first).toMatchObject({ status: 200, body: second?.body });
  expect(third?.body).not.toBe(first?.body);
});

test('a newcomer finds orders of every type, which rest around the price at which market orders are filled', async () => {
  const { get } = await run();
  const { orders } = (await get('state')) as { orders: { [name: string]: string; market: string }[] };
  expect(new Set(orders.map(({ type }) => type))).toEqual(new Set(['spot', 'margin', 'futures']));
  const prices = (await get('prices')) as Record<string, string>;
  for (const { market, side, price } of orders.filter(({ market: name }) => name in prices))
    expect(Number(price) / Number(prices[market])).toBeCloseTo(side === 'buy' ? 0.9 : 1.1, 6);
});

const SECRET = 'the-secret-of-shard-1';
const shard = { key: 'shard-1', secret: SECRET };
const runWith = (...keys: object[]) => run(['--keys', fileOf(`\uFEFF${JSON.stringify(keys)}`)]);

test('more API keys come from a file, and each has nonces of its own and the account of the first', async () => {
  const { lines, arm, get } = await runWith(shard);
  const nonce = String(Date.now() + 60_000);
  const statuses: number[] = [];
  for (const how of [{}, shard, shard, { ...shard, secret: 'demo-secret' }])
    statuses.push((await arm(how, { nonce })).status);
  expect(statuses).toEqual([200, 200, 429, 401]);
  expect(await get('state')).toHaveProperty('timers.length', 1);
  expect(lines.join('\n')).toContain('the key demo-key with the secret demo-secret, the keys shard-1, and');
  expect(lines.join('\n')).not.toContain(SECRET);
});

test('more API keys may have fewer permissions, and an account apart', async () => {
  const reads = { ...shard, key: 'reads', permissions: ['info'] };
  const { arm, get } = await runWith(reads, { ...shard, account: 'second' });
  expect((await arm(reads)).status).toBe(403);
  expect((await arm(shard)).status).toBe(200);
  expect(await get('state')).toMatchObject({ timers: [{ account: 'second' }] });
});

test.each([
  ['["a"]', 'key 1: expected an object with key, secret, account, permissions'],
  [
    '[{"key":"a","secret":""}]',
    'key 1: secret is not of its form; expected 1 to 255 printable characters without a space',
  ],
  ['[{"key":"a","secret":"S","account":""}]', 'key 1: account is ""; expected a text such as "second-key"'],
  [
    '[{"key":"a","secret":"S","permissions":["trades"]}]',
    'key 1: permissions is ["trades"]; expected an array of info, trade, deposit, withdraw; did you mean trade?',
  ],
  ['[{"key":"a","secret":"S"},{"key":"a","secret":"S"}]', 'key 2: "a" is accepted already'],
  ['[{"key":"demo-key","secret":"S"}]', 'key 1: "demo-key" is accepted already'],
  ['{"key":"k","secret":"S"', 'cannot read FILE as JSON: it is none at line 1 column 44'],
  ['S', 'cannot read FILE as JSON: it is none'],
])('the keys %s are refused, and nothing of their secret is repeated', async (keys, problem) => {
  const file = fileOf(keys.replaceAll('"S"', `"${SECRET}"`).replace('S', SECRET));
  const { exits, errors } = await run(['--keys', file]);
  const told = problem.includes('FILE') ? problem.replace('FILE', file) : `${file}: ${problem}`;
  expect([exits, errors]).toEqual([[64], [`killswitchd exchange: --keys: ${told}`]]);
});

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends it with 0 at once, whatever is open', async (name) => {
  const { url, exits, signal, get } = await run();
  await control(url, 'POST', '/simulator/faults', { kind: 'hang', mode: 'drop' });
  const { lastSeq } = (await get('state')) as { lastSeq: number };
  const hanging = send(url, ping).catch((error: NodeJS.ErrnoException) => error.code);
  await get(`events?since=${lastSeq}&wait=5000`);
  const startedMs = performance.now();
  signal(name);
  expect(await hanging).toBe('ECONNRESET');
  await expect.poll(() => exits).toEqual([0]);
  expect(performance.now() - startedMs).toBeLessThan(1000);
});

test.each<[string[], RegExp]>([
  [['--listen', '17480'], /--listen: found "17480"; allowed: HOST:PORT/],
  [['--listen', '0.0.0.0:0'], /--listen: other hosts can reach 0\.0\.0\.0; .*--allow-remote/],
  [['--listen', '127.example.com:0'], /--listen: other hosts can reach 127\.example\.com/],
  [['--markets', 'BTC_USDT,eth-usdt'], /--markets: found "eth-usdt"; allowed: .*; did you mean ETH_USDT\?/],
  [['--seed', 'x'], /--seed: found "x"; allowed: a whole number from 0/],
  [
    ['--orders', '/nonexistent.json'],
    /--orders: cannot read \/nonexistent\.json as JSON: there is no such file$/,
  ],
  [['--balances', 'USDT:5'], /--balances: found "USDT:5"; allowed: NAME=AMOUNT with commas between/],
  [['--balances', 'usdt=5'], /--balances: found "usdt"; allowed: a ticker such as USDT/],
  [['--limits', 'ping=5,ping=6'], /--limits: found "ping" twice/],
  [['--limits', 'syncKillSwitch=5'], /did you mean kill-switch\?/],
  [['--limits', 'ping=0'], /--limits: ping is 0; allowed: a whole number from 1/],
  [['--token-file', '/nonexistent'], /--token-file: .*/],
  [['--token-file', 'a file with short'], /--token-file: .*found 5 characters; allowed: at least 16/],
  [
    ['--orders', 'a file with [{"market":"XRP_USDT","type":"stop"}]'],
    /--orders: .*order 1: type is "stop"; allowed: spot/,
  ],
  [['--event-log', '/nonexistent/log'], /--event-log: cannot append to \/nonexistent\/log/],
])('the flags %j are refused with 64 and a message', async (args, message) => {
  const given = args.map((arg) => (arg.startsWith('a file with ') ? fileOf(arg.slice(12)) : arg));
  const { exits, errors, lines } = await run(given);
  expect([exits, lines, errors]).toEqual([[64], [], [expect.stringMatching(message)]]);
});

test('a port in use ends it with 69 and one message that has the address as it was given', async () => {
  const { host } = new URL((await run(['--listen', '[::1]:0'])).url);
  const { exits, errors, lines } = await run(['--listen', host]);
  const why =
    'the address is in use by another process, perhaps another killswitchd; stop it, or set --listen to another port';
  const problem = `killswitchd exchange: cannot listen on ${host}: ${why}`;
  expect([exits, lines, errors]).toEqual([[69], [], [problem]]);
});
