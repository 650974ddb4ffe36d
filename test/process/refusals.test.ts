import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { send, signed } from '../simulator/raw-client.ts';
import { asker } from './control.ts';
import { guard, stageFor } from './harness.ts';
import { endBy, eventually, sleep } from './program.ts';
import { DEMO, firstRenewalsAfter, ofKind } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];
const HOUR_MS = 3_600_000;
const UNAUTHORISED = { kind: 'unauthorised' } as const;

// The two addresses are those of two exchanges here, which the daemon cannot know.
test.concurrent('an exchange that refuses everything costs nothing where another address of the account is well', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const [first, other] = [await stage.exchange(), await stage.exchange()];
  const markets = MARKETS.map((market) => ({ market, timeoutSeconds: 5 }));
  const config = { exchange: { baseUrls: [first.url, other.url], sameAccount: true } };
  const daemon = await stage.daemon({ exchange: first.url, markets, config });
  await daemon.ready();
  await first.addFaults(UNAUTHORISED);
  const fired = await first.event('timer-fired', 10_000);
  const armed = ofKind(await other.events(), 'timer-armed');
  expect(armed.map(({ market }) => market).toSorted()).toEqual(MARKETS);
  expect(Math.max(...armed.map(({ atMs }) => atMs))).toBeLessThan(fired.atMs);
  await sleep(7000);
  expect(ofKind(await other.events(), 'timer-fired')).toEqual([]);
});

test.concurrent('a key that the exchange refuses because it was changed is read again from its file within seconds, and everything is armed without a restart', {
  timeout: 60_000,
}, async (context) => {
  const { stage, exchange, daemon } = await guard(context, { markets: MARKETS });
  await exchange.addFaults(UNAUTHORISED);
  await eventually('a refused key', 15_000, () => daemon.logged('unauthorised')[0]);
  await exchange.end();
  const changed = await stage.exchange({ listen: new URL(exchange.url).host, secret: 'the-next-secret' });
  const writtenMs = Date.now();
  writeFileSync(daemon.secretFile, 'the-next-secret\n');
  const read = await eventually('the new secret', 5000, () => daemon.logged('secrets-changed')[0]);
  expect(Date.parse(read.time) - writtenMs).toBeLessThan(2500);
  await firstRenewalsAfter(changed, MARKETS, 0);
  expect(daemon.logged('secrets-changed')).toHaveLength(1);
  expect(daemon.stdout()).not.toContain('the-next-secret');
});

test.concurrent('a reload puts the key of its files in force, also where that is the one of before, and another one was read while it was refused', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, { markets: MARKETS, control: true });
  const ask = asker(context, daemon.socket);
  const other = { key: 'key-of-another-account', secret: DEMO.secret, account: 'other' };
  await exchange.addKeys(other);
  await exchange.addFaults({ ...UNAUTHORISED, match: { key: DEMO.key } });
  const keyFile = join(dirname(daemon.secretFile), 'api-key');
  writeFileSync(keyFile, other.key);
  await exchange.event('timer-armed', 15_000, ({ account }) => account === other.account);
  await exchange.clearFaults();
  writeFileSync(keyFile, DEMO.key);
  expect((await ask('/v1/reload')).body).toMatchObject({ result: 'applied' });
  await eventually('the second change in the log', 5000, () => daemon.logged('secrets-changed')[1]);
  expect(daemon.logged('secrets-changed')).toHaveLength(2);
  const backMs = await exchange.nowMs();
  const isOwn = (account: string, atMs: number) => account !== other.account && atMs >= backMs;
  await exchange.event('timer-updated', 15_000, ({ account, atMs }) => isOwn(account, atMs));
});

/** What a daemon with the same key did while the clock of its host was ahead. */
async function acceptNonce(url: string, aheadMs: number): Promise<void> {
  const nonce = String(Date.now() + aheadMs);
  const { status } = await send(url, signed({ market: 'ZZZ_USDT', timeout: null, types: null, nonce }));
  expect(status).toBe(200);
}

test.concurrent('a key whose last nonce comes from a clock that was 30 days ahead arms its markets, after a restart as well; where it is a year, what helps is said', {
  timeout: 60_000,
}, async (context) => {
  const stage = stageFor(context);
  const exchange = await stage.exchange();
  await acceptNonce(exchange.url, 30 * 24 * HOUR_MS);
  const start = () => stage.daemon({ exchange: exchange.url, markets: ['AAA_USDT'] });
  for (let life = 0; life < 2; life += 1) {
    const daemon = await start();
    await daemon.ready();
    expect(daemon.logged('attempt-failed').length).toBeLessThan(20);
    expect(await endBy(daemon)).toBe(0);
    const env = { KILLSWITCHD_API_KEY: DEMO.key, KILLSWITCHD_API_SECRET: DEMO.secret };
    const check = await stage.run(['check-config', '--live', '--config', daemon.configFile], { env });
    expect([(await check.exit()).code, check.stderr()]).toEqual([0, '']);
  }
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);

  await acceptNonce(exchange.url, 365 * 24 * HOUR_MS);
  const daemon = await start();
  const advice = await eventually('the advice', 15_000, async () => {
    const { body } = await daemon.get('/readyz');
    return /^.*make a new API key.*$/m.exec(body)?.[0];
  });
  expect(advice).toMatch(/^\[-\]timer\/AAA_USDT failed: .*up to 64 days ahead is called stale/);
});
