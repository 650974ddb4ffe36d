import { expect, test } from 'vitest';
import { guard } from './harness.ts';
import { eventually, sleep } from './program.ts';
import { firstRenewalsAfter, ofKind } from './simulated-exchange.ts';

const MARKETS = ['AAA_USDT', 'BBB_USDT', 'CCC_USDT'];

// Where it is the exchange that hangs: `test/core/outage.test.ts`, and over HTTP `odd-answers.test.ts`.
test.concurrent('a daemon that stands still for longer than its timers last says each lapse once, and arms again at once', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, { markets: MARKETS, timeoutSeconds: 5 });
  await sleep(1000);
  daemon.signal('SIGSTOP');
  await sleep(6500);
  const continuedMs = await exchange.nowMs();
  daemon.signal('SIGCONT');
  for (const atMs of await firstRenewalsAfter(exchange, MARKETS, continuedMs))
    expect(atMs - continuedMs).toBeLessThan(2000);
  await daemon.ready();
  await eventually('all lapses in the log', 5000, () => daemon.logged('lapsed')[MARKETS.length - 1]);
  await sleep(1500);
  expect(daemon.marketsLogged('lapsed')).toEqual(MARKETS);
  for (const market of MARKETS) expect(await daemon.metric('killswitch_lapses_total', { market })).toBe(1);
  expect(ofKind(await exchange.events(), 'timer-fired')).toHaveLength(MARKETS.length);
  // Certain, but for one whose answer was outstanding when the daemon was stopped.
  expect(await daemon.metric('killswitch_lapses_by_certainty_total')).toBe(MARKETS.length);
});

test.concurrent('a daemon that stands still for 3 s at T = 10, stopped or with its event loop blocked, lapses nothing and renews all as soon as it goes on', {
  timeout: 60_000,
}, async (context) => {
  const { exchange, daemon } = await guard(context, { markets: MARKETS, canSabotage: true });
  await sleep(1000);
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
  await daemon.ready();
  expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
  expect(daemon.logged('lapsed')).toEqual([]);
});
