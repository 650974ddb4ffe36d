import { describe, expect, type TestContext, test } from 'vitest';
import type { DaemonProcess } from './daemon.ts';
import { guard } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { firstRenewalsAfter, ofKind, type RunningExchange } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

/** A daemon that has guarded the markets for a while. */
async function guardFor(context: TestContext, timeoutSeconds: number) {
  const guarded = await guard(context, { markets: MARKETS, timeoutSeconds, canSabotage: true });
  await sleep(1000);
  return guarded;
}

async function expectNoLapse(exchange: RunningExchange, daemon: DaemonProcess) {
  await daemon.ready();
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect(daemon.logged('lapsed')).toEqual([]);
}

async function expectOneLapseEach(exchange: RunningExchange, daemon: DaemonProcess) {
  await daemon.ready();
  await eventually('all lapses in the log', 5000, () => daemon.logged('lapsed')[MARKETS.length - 1]);
  await sleep(1500);
  expect(daemon.marketsLogged('lapsed')).toEqual(MARKETS);
  for (const market of MARKETS) expect(await daemon.metric('killswitch_lapses_total', { market })).toBe(1);
  expect(ofKind(await exchange.events(), 'timer-fired')).toHaveLength(MARKETS.length);
}

describe.concurrent('at T = 5', { timeout: 60_000 }, () => {
  test('a hang of the exchange of 2 s lapses nothing; one of 8 s does, which is said once per market, and all is armed again within 2 s', async (context) => {
    const { exchange, daemon } = await guardFor(context, 5);
    await exchange.addFaults({ kind: 'hang', mode: 'drop', forMs: 2000 });
    await sleep(3500);
    await expectNoLapse(exchange, daemon);
    expect(daemon.logged('overdue')).toEqual([]);

    const hangMs = 8000;
    await exchange.addFaults({ kind: 'hang', mode: 'hold', forMs: hangMs });
    const endMs = (ofKind(await exchange.events(), 'fault-added').at(-1)?.atMs ?? 0) + hangMs;
    await sleep(hangMs - 1500);
    expect((await daemon.get('/readyz')).status).toBe(503);
    expect((await daemon.get('/livez')).status).toBe(200);
    expect(ofKind(await exchange.events(), 'order-cancelled')).toHaveLength(MARKETS.length);
    for (const atMs of await firstRenewalsAfter(exchange, MARKETS, endMs))
      expect(atMs - endMs).toBeLessThanOrEqual(2000);
    await expectOneLapseEach(exchange, daemon);
    expect(daemon.marketsLogged('overdue')).toEqual(MARKETS);
  });

  test('a daemon that stands still for longer says each lapse once, and arms again at once', async (context) => {
    const { exchange, daemon } = await guardFor(context, 5);
    daemon.signal('SIGSTOP');
    await sleep(6500);
    const continuedMs = await exchange.nowMs();
    daemon.signal('SIGCONT');
    for (const atMs of await firstRenewalsAfter(exchange, MARKETS, continuedMs))
      expect(atMs - continuedMs).toBeLessThan(2000);
    await expectOneLapseEach(exchange, daemon);
    // Certain, but for one whose answer was outstanding when the daemon was stopped.
    expect(await daemon.metric('killswitch_lapses_by_certainty_total')).toBe(MARKETS.length);
  });
});

test.concurrent('a daemon that stands still for 3 s at T = 10, stopped or with its event loop blocked, lapses nothing and renews all as soon as it goes on', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guardFor(context, 10);
  daemon.signal('SIGSTOP');
  await sleep(3000);
  const continuedMs = await exchange.nowMs();
  daemon.signal('SIGCONT');
  // Whoever continues it may be stopped itself right before.
  const latestMs = (await exchange.nowMs()) + 1000;
  for (const atMs of await firstRenewalsAfter(exchange, MARKETS, continuedMs))
    expect(atMs).toBeLessThan(latestMs);
  await eventually('a line about the stop', 2000, () => daemon.logged('stall')[0]);
  const linesBefore = daemon.logged('stall').length;
  daemon.sabotage({ kind: 'block', ms: 3000 });
  await eventually('a line about the block', 8000, () => daemon.logged('stall')[linesBefore]);
  await firstRenewalsAfter(exchange, MARKETS, await exchange.nowMs());
  await expectNoLapse(exchange, daemon);
});
