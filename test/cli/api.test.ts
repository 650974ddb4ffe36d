import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { json, text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { OPERATIONS } from '../../src/exchange/operations.ts';
import type { Fault } from '../../src/simulator/faults.ts';
import { type SimulatedServer, startSimulatedServer } from '../../src/simulator/server.ts';
import { CODES, ORDER as FILLED } from '../exchange/samples.ts';
import { daemonAt, fileWith, run, type Setting } from './stage.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.ts');
const KEY = 'api-key-0123456789';
const SECRET = 'api-secret-0123456789';
const TOKEN = 'api-token-0123456789';

let server: SimulatedServer;
let env: Record<string, string>;

beforeAll(async () => {
  const exchange = {
    keys: [
      { key: KEY, secret: SECRET, account: 'main' },
      { key: 'reader', secret: SECRET, account: 'main', permissions: ['info'] as const },
    ],
    tokens: [{ token: TOKEN, account: 'main' }],
    newAddresses: true,
  };
  const listen = { host: '127.0.0.1', port: 0 };
  server = await startSimulatedServer({ clock: createSystemClock(), listen, exchange });
  env = { KILLSWITCHD_BASE_URL: server.url, KILLSWITCHD_API_KEY: KEY, KILLSWITCHD_API_SECRET: SECRET };
});
afterAll(() => server.close());
beforeEach(() => server.clearFaults());

/** What a shell sees of `killswitchd api`, with its standard output read as JSON. */
async function api(args: readonly string[], setting: Setting = {}) {
  const { code, out, err } = await run(['api', ...args], { env, ...setting });
  const said = out.join('\n');
  for (const secret of [KEY, SECRET, TOKEN]) expect(said + err.join('\n')).not.toContain(secret);
  return { code, err, value: said === '' ? undefined : (JSON.parse(said) as unknown) };
}

const keyless = () => ({ env: { KILLSWITCHD_BASE_URL: server.url } });
const failingApi = (code: number, says: RegExp) => ({ code, err: [expect.stringMatching(says)] });

const OF_A_SHELL = { clientOrderId: 'from-a-shell' };
const ORDER = { market: 'BTC_USDT', side: 'buy', amount: '60', amountIn: 'quote', ...OF_A_SHELL };
const NEW = 'createStockMarketOrder';
const withOrder = (order: object, ...flags: string[]) => [NEW, JSON.stringify(order), ...flags];
const WITHDRAWAL = { ticker: 'USDT', amount: '10', address: 'TXyz', uniqueId: 'w-1', network: 'TRC20' };
const balance = (currency: string) => Number(server.exchange.books().accounts['main']?.[currency]);

describe('api calls', () => {
  it('what moves money, and moves it, also with its arguments on standard input', async () => {
    const [btc, usdt] = [balance('BTC'), balance('USDT')];
    const dealt = { market: 'BTC_USDT', deal_stock: '0.001', status: 'FILLED' };
    const value = { ...dealt, client_order_id: 'from-a-shell' };
    expect(await api(withOrder(ORDER, '--yes'))).toMatchObject({ code: 0, err: [], value });
    expect(balance('BTC')).toBeCloseTo(btc + 0.001);
    // Some shells begin what they pipe with a byte order mark.
    const input = `\uFEFF${JSON.stringify(WITHDRAWAL)}`;
    expect(await api(['withdrawPay', '-', '--yes'], { input })).toMatchObject({ code: 0 });
    expect(server.exchange.withdrawals()).toMatchObject([{ uniqueId: 'w-1', amount: '10' }]);
    expect(balance('USDT')).toBeLessThan(usdt - 60 - 10);
  });

  it('orderHistory with the access token of a file, and without key and secret', async () => {
    await api(withOrder({ ...ORDER, clientOrderId: 'of-the-history' }, '--yes'));
    const args = ['orderHistory', '{"limit":1}', '--access-token-file', fileWith(`${TOKEN}\n`)];
    const value = { limit: 1, data: [{ client_order_id: 'of-the-history' }] };
    expect(await api(args, keyless())).toMatchObject({ code: 0, value });
  });

  it('as a process of its own, with what a pipe gives it', async () => {
    const child = spawn(process.execPath, [MAIN, 'api', 'myCodes', '-'], { env, timeout: 15_000 });
    child.stdin.write('{"limit":');
    child.stdin.end('1}');
    expect(await json(child.stdout)).toMatchObject({ limit: 1, data: [{}] });
  });

  it('and says so where the reply cannot be written: what was done must not look undone, nor be lost', async () => {
    const notForWriting = openSync(MAIN, 'r');
    const stdio: StdioOptions = ['ignore', notForWriting, 'pipe'];
    const child = spawn(process.execPath, [MAIN, 'api', 'ping'], { env, stdio });
    const stderr = child.stderr as Readable;
    const [said, [code]] = await Promise.all([text(stderr), once(child, 'close')]);
    closeSync(notForWriting);
    const told = 'ping was carried out, but its reply could not be written';
    expect([code, said]).toEqual([70, `killswitchd api: ${told}\n`]);
  });

  const address = expect.stringMatching(/^3/);
  const RANGE = { account: 'rig', from: 1_700_000_000, to: 1_700_007_200, interval: '1h' };
  it.each<[string, object, object | null, (() => Setting)?]>([
    ['syncKillSwitch', { market: 'ETH_USDT', timeoutSeconds: 60 }, { market: 'ETH_USDT' }],
    ['syncKillSwitch', { market: 'ETH_USDT', timeoutSeconds: null }, null],
    ['myCodes', { limit: 2, offset: 1 }, { limit: 2, offset: 1, data: [{}, {}] }],
    ['miningHashrate', RANGE, { data: { account: 'rig', hashrate: [{}, {}] } }],
    ['createNewAddress', { ticker: 'BTC', type: 'p2sh-segwit' }, { account: { address } }],
    ['miningPool', {}, { data: { assets: ['BTC'] } }, keyless],
    ['ping', {}, { latencyMs: expect.any(Number) }, keyless],
  ])('%s with %j', async (name, given, value, setting) => {
    expect(await api([name, JSON.stringify(given)], setting?.())).toMatchObject({ code: 0, value });
  });
});

it('api --list shows the nine operations with request, limit and what they do, and gives programs the same', async () => {
  const { code, out } = await run(['api', '--list']);
  expect([code, out.length]).toEqual([0, 1 + 9]);
  const words = out.map((line) => line.replaceAll(/ {2,}/g, ' | '));
  const withdraw = 'withdrawPay | POST /api/v4/main-account/withdraw-pay | 1000 in 10 s | moves money';
  const history = 'orderHistory | POST /api/v4/accounts/orders | not shown | reads';
  expect(words).toEqual(expect.arrayContaining([withdraw, history]));
  const rows = (await api(['--list', '--json'])).value as { name: string; movesMoney: boolean }[];
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(OPERATIONS));
  const dear = rows.filter(({ movesMoney }) => movesMoney).map(({ name }) => name);
  expect(dear).toEqual(['createStockMarketOrder', 'withdrawPay']);
});

describe('api ends with 64, with --json in JSON too, and sends nothing', () => {
  const ANY = { ...ORDER, amountIn: undefined };
  const SENT = JSON.stringify({ ...WITHDRAWAL, uniqueId: 'w-2' });
  const flags = ['--amount-in', 'base'];
  const priced = /would buy 60 BTC, whatever that costs in USDT, at the market price, at http:/;
  const unsaid =
    /amountIn is missing; allowed: quote, base: what the exchange counts a buy's amount in.*--amount-in/;
  const nothing =
    /would buy BTC for 60 USDT, at the market price, at http:.*; add --yes to do it, nothing was sent$/;
  const sends = /would send 10 USDT to "TXyz", with the fee on top, at http:.*; add --yes/;
  const twice = /--amount-in is base, and amountIn in the JSON is another; give one$/;
  it.each<[readonly string[], RegExp, string?]>([
    [['minningPool'], /did you mean miningPool\?$/],
    // As the simulated exchange calls it.
    [['kill-switch'], /did you mean syncKillSwitch\?$/],
    [[], /no operation is named; allowed: createStockMarketOrder, orderHistory/],
    [['myCodes', '{limit:1}'], /the arguments are no JSON at position 1; write an object/],
    [['ping', 'a-secret'], /the arguments are no JSON; write an object/],
    [['myCodes', '-'], /at most 64 KiB$/, `{"a":"${'a'.repeat(65_536)}"}`],
    // What Node makes of bytes that are no UTF-8: money would go to another address.
    [['withdrawPay', SENT.replace('TXyz', 'Z\uFFFDrich'), '--yes'], /the arguments are not UTF-8/],
    [['ping', '{"a":1}'], /ping takes no arguments/],
    [['orderHistory'], /--access-token-file: missing/],
    [withOrder(ORDER), nothing],
    [withOrder(ANY, ...flags), priced],
    [withOrder({ ...ANY, side: 'sell' }), /would sell 60 BTC, for USDT, at the market/],
    [['withdrawPay', SENT], sends],
    [withOrder(ANY, '--yes'), unsaid],
    [withOrder({ ...ANY, side: 'sell' }, '--amount-in', 'quote'), /a sell is counted in the base currency$/],
    [withOrder(ORDER, ...flags, '--yes'), twice],
    [['withdrawPay', SENT, ...flags, '--yes'], /--amount-in: withdrawPay has no amount to be counted/],
    // Wrong arguments come before a missing --yes.
    [withOrder({ ...ORDER, side: 'Sell' }), /side is "Sell"; allowed: buy, sell; did you mean sell\?$/],
    [[NEW, '[]', ...flags], /request is an empty list; allowed: an object with market,/],
    [['ping', '--base-url', 'exchange.example'], /--base-url: .*https:/],
  ])('for %j', async (args, sentence, input = '') => {
    const before = server.exchange.books();
    expect(await api(args, { input })).toMatchObject(failingApi(64, sentence));
    const { code, value } = await api([...args, '--json'], { input });
    const error = { name: expect.stringMatching(/^(Command|Argument)Error$/), message: expect.any(String) };
    expect({ code, value }).toMatchObject({ code: 64, value: { error } });
    expect(server.exchange.books()).toEqual(before);
  });
});

describe('api tells failures apart', () => {
  const failing = ['--yes', '--json'];
  const IN_BASE = { ...ORDER, amountIn: 'base', clientOrderId: 'other-unit' };
  const small = withOrder({ ...ORDER, amount: '0.01', clientOrderId: 'small' }, ...failing);
  const tooLittle = { name: 'RefusedError', code: 32, fields: { amount: [{}, {}] } };
  const arms = ['syncKillSwitch', '{"market":"BTC_USDT","timeoutSeconds":60}', '--json'];
  const maybe = { name: 'ServerError', status: 503, maybeApplied: true };
  const otherUnit = { client_order_id: 'other-unit', deal_money: '60' };
  const mismatch = { name: 'OrderMismatchError', order: otherUnit };
  const bought = /bought 0\.001 BTC for 60 USDT, asked was to buy for 60 BTC; .*; nothing was undone$/;
  const lost = withOrder({ ...ORDER, clientOrderId: 'lost' }, ...failing);
  const unknown = { name: 'UnknownOutcomeError', clientOrderId: 'lost' };
  const look = /may have been carried out: .*look for client_order_id "lost" before trying again$/;
  const html = { kind: 'status', status: 503, body: 'html' } as const;
  const paid = ['withdrawPay', JSON.stringify({ ...WITHDRAWAL, uniqueId: 'w-3' }), ...failing];
  const page = (status: number) => ({ ...html, status });
  const paidByPage = /may have been carried out: HTTP 429 .*; look for unique_id "w-3" in the withdrawals/;
  const [nonce, paidMaybe] = [{ name: 'NonceError' }, { name: 'UnknownOutcomeError', uniqueId: 'w-3' }];
  const throttled = { name: 'ThrottledError', maybeApplied: true };
  const tooMany = /HTTP 429 .*; too many requests; it may have been carried out all the same$/;
  const refusesKey = /HTTP 403 .* the token; it may have been carried out all the same$/;
  const stale = { kind: 'stale-nonce' } as const;
  const inUse = /; the nonce is stale, because another process uses the key, .*; nothing was changed$/;
  it.each<[number, readonly string[], RegExp, (object | undefined)?, Fault?]>([
    [64, small, /less than min amount.*refused what was asked with code 32, nothing was changed$/, tooLittle],
    [69, ['ping', '--base-url', 'http://127.0.0.1:1'], /ECONNREFUSED/],
    [69, arms, /HTTP 503.*; it may have been carried out all the same$/, maybe, html],
    [69, paid, inUse, nonce, stale],
    [69, arms, tooMany, throttled, page(429)],
    [75, paid, paidByPage, paidMaybe, page(429)],
    [77, arms, refusesKey, { name: 'UnauthorisedError', maybeApplied: true }, page(403)],
    [70, ['miningPool'], /./, undefined, { kind: 'garbage' }],
    // The exchange counts in the other currency.
    [70, withOrder(IN_BASE, ...failing), bought, mismatch],
    [75, lost, look, unknown, { kind: 'reset', when: 'after' }],
  ])('%i for %j', async (code, args, sentence, error, fault) => {
    if (fault !== undefined) server.addFaults([fault]);
    const asked = await api(args);
    expect(asked).toMatchObject(failingApi(code, sentence));
    if (error === undefined) expect(asked.value).toBeUndefined();
    else expect(asked.value).toMatchObject({ error });
  });

  it('75 for an order that somebody interrupts on its way: it may have been carried out', async () => {
    const { log } = server.exchange;
    const before = log.lastSeq();
    server.addFaults([{ kind: 'hang', mode: 'drop' }]);
    const child = spawn(process.execPath, [MAIN, 'api', ...withOrder(ORDER, '--yes')], { env });
    const kinds = () => log.since(before).map(({ kind }) => kind);
    await expect.poll(kinds, { timeout: 15_000 }).toContain('fault-applied');
    child.kill('SIGINT');
    const [said, closed] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect(closed).toEqual([75, null]);
    expect(said).toMatch(/withdrawn by its signal; look for client_order_id "from-a-shell" before/);
  });

  // That nothing printed holds a secret, `api` looks at itself.
  const order = { ...FILLED, client_order_id: ORDER.clientOrderId, side: KEY, stp: SECRET };
  const hidden = { side: '[redacted]', stp: '[redacted]' };
  const echo = [KEY, { [SECRET]: 1 }];
  const quota = { message: 'HTTP 200: [redacted]!', params: ['[redacted]'] };
  it.each<[number, readonly string[], object, object]>([
    [0, ['myCodes'], { ...CODES, echo }, { echo: ['[redacted]', { '[redacted]': 1 }] }],
    [0, ['orderHistory'], { echo: `Bearer ${TOKEN}` }, { echo: 'Bearer [redacted]' }],
    [70, withOrder(ORDER, '--yes', '--json'), order, { error: { order: hidden } }],
    // Its request holds no key, and its exchange knows the one of others.
    [
      64,
      ['miningPool', '--json'],
      { success: false, message: `${KEY}!`, params: [SECRET] },
      { error: quota },
    ],
  ])('%i for %j, whose reply repeats a secret that is not printed', async (code, args, json, printed) => {
    const { address } = await daemonAt({ tcp: true }, () => ({ json }));
    const flags = args[0] === 'orderHistory' ? ['--access-token-file', fileWith(TOKEN)] : [];
    const asked = await api([...args, ...flags, '--base-url', `http://${address}`]);
    expect(asked).toMatchObject({ code, value: printed });
  });

  it('77 for a wrong secret, a missing permission and a wrong token', async () => {
    const wrong = await api(['myCodes'], { env: { ...env, KILLSWITCHD_API_SECRET: 'not-the-secret' } });
    const lacking = await api(withOrder(ORDER, '--yes'), { env: { ...env, KILLSWITCHD_API_KEY: 'reader' } });
    const token = await api(['orderHistory', '--access-token-file', fileWith('another-token')]);
    expect([wrong.code, lacking.code, token.code]).toEqual([77, 77, 77]);
    expect(lacking.err[0]).toMatch(/perform this action; the exchange refuses the key/);
    expect(token.err[0]).toMatch(
      /HTTP 401.*refuses the key, its permissions or the token; nothing was changed$/,
    );
  });

  it('goes over plain http to another host only with exchange.allowPlainHttp, and says so', async () => {
    // An address that is none of the loopback's and leads here all the same.
    const other = server.url.replace('127.0.0.1', '0.0.0.0');
    const args = ['ping', '--base-url', other];
    expect(await api(args)).toMatchObject(failingApi(64, /not encrypted/));
    const config = fileWith('{"exchange":{"allowPlainHttp":true}}', 'killswitchd.json');
    const says = new RegExp(`everybody on the way to ${other} can read the API key`);
    expect(await api([...args, '--config', config])).toMatchObject(failingApi(0, says));
  });

  it('78 where key, secret or base address are missing, one line for each', async () => {
    const keys = await api(['myCodes', '--json'], keyless());
    expect(keys).toMatchObject({ code: 78, value: { error: { name: 'CommandError' } } });
    expect(keys.err).toHaveLength(2);
    const says = /--base-url https:\/\/HOST.*KILLSWITCHD_BASE_URL/;
    expect(await api(['ping'], { env: {} })).toMatchObject(failingApi(78, says));
  });
});

describe('api reads of a configuration file', () => {
  it.each([
    ['', /^killswitchd api: --config or KILLSWITCHD_CONFIG: found an empty text; allowed: /],
    [
      'exchange: { baseUrl: ["https://a.example"] }',
      /:1:13 exchange\.baseUrl: unknown key.*mean baseUrls\?$/,
    ],
  ])('what is wrong in %j, by its place, or whose name is empty', async (text, says) => {
    const file = text && fileWith(text);
    expect(await api(['ping', '--config', file], { env: {} })).toMatchObject(failingApi(78, says));
    const byVariable = { env: { KILLSWITCHD_CONFIG: file } };
    expect(await api(['ping'], byVariable)).toMatchObject(failingApi(78, says));
  });

  it('a variable that there is not, because the right one may lead to another exchange', async () => {
    const misspelt = { env: { ...env, KILLSWITCHD_BASEURL: 'http://127.0.0.1:1' } };
    const says =
      /^killswitchd api: KILLSWITCHD_BASEURL: unknown variable; did you mean KILLSWITCHD_BASE_URL\?$/;
    expect(await api(['ping'], misspelt)).toMatchObject(failingApi(78, says));
  });

  it('the exchange alone: markets and liveness may be missing or wrong', async () => {
    const file = fileWith(`exchange: { baseUrls: ["${server.url}"], nonce: window }\nmarkets: nonsense\n`);
    const { KILLSWITCHD_BASE_URL: _, ...keys } = env;
    expect(await api(['myCodes', '--config', file], { env: keys })).toMatchObject({ code: 0 });
    const flag = ['--base-url', 'http://127.0.0.1:1'];
    expect(await api(['ping', '--config', file, ...flag], { env: keys })).toMatchObject({ code: 69 });
  });
});
