import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createClient, createClientFromEnvironment, isClientError } from '../../src/library/client.ts';
import { startExchange } from '../../src/library/simulator.ts';
import { folderFor } from '../liveness/started.ts';

async function open() {
  const simulator = await startExchange();
  onTestFinished(() => simulator.close());
  const folder = folderFor({ onTestFinished });
  const fileOf = (text: string) => {
    const file = join(folder, 'secret');
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const KILLSWITCHD_BASE_URL = simulator.url;
  return { simulator, fileOf, env: { KILLSWITCHD_BASE_URL, KILLSWITCHD_API_KEY: 'demo-key' } };
}

test('a client takes base address, key and secret from the environment, and a file anew for every request', async () => {
  const { fileOf, env } = await open();
  const KILLSWITCHD_API_SECRET_FILE = fileOf('demo-secret\n');
  await using client = createClientFromEnvironment({ ...env, KILLSWITCHD_API_SECRET_FILE });
  expect(await client.myCodes({ limit: 1 })).toMatchObject({ limit: 1 });
  fileOf('another-secret');
  await expect(client.myCodes()).rejects.toMatchObject({ name: 'UnauthorisedError' });
  fileOf('');
  const error: unknown = await client.myCodes().catch((failed: unknown) => failed);
  if (!isClientError(error) || error.name !== 'CredentialError') expect.fail(String(error));
  expect(error.message).toMatch(/^the API key could not be read: KILLSWITCHD_API_SECRET_FILE: in the file/);
});

test.each([
  [{}, 'KILLSWITCHD_BASE_URL is missing; allowed: https://HOST[:PORT]'],
  [
    { KILLSWITCHD_BASE_URL: 'x', KILLSWITCHD_API_KEY: 'key', KILLSWITCHD_API_SECRET: 'secret' },
    'KILLSWITCHD_BASE_URL: exchange address "x" is not a URL; write https://HOST[:PORT]',
  ],
  [
    { KILLSWITCHD_BASE_URL: 'https://exchange.example' },
    'KILLSWITCHD_API_KEY: missing; set KILLSWITCHD_API_KEY_FILE',
  ],
])('an environment of %j makes no client', (env, message) => {
  expect(() => createClientFromEnvironment(env)).toThrow(message);
});

test('a client that was disposed of makes no calls, and its time holds for calls that name none', async () => {
  const { simulator, env: given } = await open();
  const env = { ...given, KILLSWITCHD_API_SECRET: 'demo-secret' };
  const client = createClientFromEnvironment(env, { timeoutMs: 500 });
  simulator.addFaults([{ kind: 'hang', mode: 'drop' }]);
  const begunMs = performance.now();
  await expect(client.myCodes()).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(performance.now() - begunMs).toBeLessThan(2_000);
  await client[Symbol.asyncDispose]();
  await expect(client.ping()).rejects.toMatchObject({ reason: 'aborted' });
  expect(() => createClientFromEnvironment(env, { timeoutMs: 0 })).toThrow('timeoutMs is 0');
});

const LIMIT = { requests: 1, windowMs: 1_000 };
const ORDER = { market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '0.5', price: '50000' };

test.each([
  [{ tme: 'manual' }, 'startExchange has no argument "tme"; allowed: clock, listen, exchange, orders'],
  [{ time: 'manul' }, 'time is "manul"; allowed: running, manual'],
  [{ exchange: { profle: 'live' } }, 'did you mean profile?'],
  [{ exchange: { profile: 'life' } }, 'profile is "life"; allowed: documented, live'],
  [{ listen: '127.0.0.1:0' }, 'listen is "127.0.0.1:0"; allowed: an object with host, port'],
  [{ listen: { host: '127.0.0.1' } }, 'listen[port] is missing; allowed: an object with host, port'],
  [{ exchange: { limits: { killswitch: LIMIT } } }, /^limits has no .*; did you mean kill-switch\?$/],
  [
    { exchange: { limits: { ping: { ...LIMIT, requests: -1 } } } },
    'limits[ping][requests] is -1; allowed: by',
  ],
  [{ exchange: { startTimeRounding: 'up' } }, 'startTimeRounding is "up"; allowed: floor, round, ceil'],
  [{ exchange: { markets: 'BTC_USDT' } }, 'markets is "BTC_USDT"; allowed: a list of names, or any'],
  [{ exchange: { balances: { main: { USDT: 5 } } } }, 'balances[main][USDT] is 5; allowed: by account and'],
  [{ exchange: { keys: [{ key: 'a' }] } }, 'keys[0][secret] is missing; allowed: a list of objects with key'],
  [{ exchange: { terms: { A_B: { price: '0' } } } }, 'terms[A_B][price] is "0"; allowed: by market price'],
  [
    { orders: [{ ...ORDER, side: 'bye' }] },
    'orders: order 1: side is "bye"; allowed: buy, sell; did you mean',
  ],
  [
    { orders: [ORDER], exchange: { markets: ['ETH_USDT'] } },
    'orders: order 1: market is "BTC_USDT"; expected',
  ],
])('no exchange is started with %j', async (options, message) => {
  await expect(startExchange(options as never)).rejects.toThrow(message);
});

test.each([
  [undefined, 'options is missing; allowed: an object with bases'],
  [{ base: 'http://127.0.0.1:1' }, 'createClient has no argument "base"; allowed: bases,'],
])('no client is made with %j', (options, message) => {
  expect(() => createClient(options as never)).toThrow(message);
});
