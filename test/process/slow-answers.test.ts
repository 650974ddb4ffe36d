import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { eventually, said, sleep } from './program.ts';
import { longestGapMs, ofKind } from './simulated-exchange.ts';

const slow = (ms: number) =>
  ({ kind: 'latency', ms, when: 'after', match: { operation: 'kill-switch' } }) as const;

const marketsOf = (count: number, timeoutSeconds: number) =>
  Array.from({ length: count }, (_, index) => ({ market: `M${index}_USDT`, timeoutSeconds }));

describe.concurrent('an exchange that carries everything out and answers late', { timeout: 120_000 }, () => {
  for (const when of ['from the start', 'while the daemon runs'] as const)
    test(`after 1.7 s, ${when}: no timer of 5 s fires`, async (context) => {
      const stage = stageFor(context);
      const exchange = await stage.exchange();
      const markets = marketsOf(20, 5);
      if (when === 'from the start') await exchange.addFaults(slow(1700));
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets,
        config: { exchange: { baseUrls: [exchange.url], nonce: 'window' } },
      });
      await daemon.ready(30_000);
      if (when === 'while the daemon runs') await exchange.addFaults(slow(1700));
      await sleep(30_000);
      expect(ofKind(await exchange.events(), 'timer-fired')).toEqual([]);
      expect(daemon.logged('lapsed')).toEqual([]);
    });

  test('after 3.5 s: 200 timers of 60 s are renewed before half of their time is gone', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const markets = marketsOf(200, 60);
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets,
      config: { exchange: { baseUrls: [exchange.url], nonce: 'window' } },
    });
    await daemon.ready(30_000);
    await exchange.addFaults(slow(3500));
    const fromMs = await exchange.nowMs();
    await sleep(40_000);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    const gaps = markets.map(({ market }) => longestGapMs(events, market, fromMs, toMs));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(30_000);
    expect(ofKind(events, 'timer-fired')).toEqual([]);
    expect(daemon.logged('lapsed')).toEqual([]);
  });

  test('after 3.5 s, from the start: 200 timers are armed by one request each, or little more', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    await exchange.addFaults(slow(3500));
    const markets = marketsOf(200, 60);
    const config = { exchange: { baseUrls: [exchange.url], nonce: 'window' } };
    await stage.daemon({ exchange: exchange.url, markets, config });
    const events = await eventually('all armed', 60_000, async () => {
      const known = await exchange.events();
      return ofKind(known, 'timer-armed').length === markets.length ? known : null;
    });
    expect(ofKind(events, 'timer-updated').length).toBeLessThan(100);
  });

  for (const nonce of ['increasing', 'window'] as const)
    test(`from the start: armed within three round trips, and a stop deletes; nonces ${nonce}`, async (context) => {
      const stage = stageFor(context);
      await Promise.all(
        [1600, 2000, 2900, 4500].map(async (ms) => {
          const exchange = await stage.exchange();
          await exchange.addFaults(slow(ms));
          const markets = marketsOf(2, 30);
          const daemon = await stage.daemon({
            exchange: exchange.url,
            markets,
            config: {
              exchange: { baseUrls: [exchange.url], nonce },
              shutdown: { budgetSeconds: 15 },
            },
          });
          const first = await exchange.event('timer-armed', 20_000);
          // In a nonce window a request of an earlier life may undo what is armed until its lifetime is over.
          const lifetimeMs = nonce === 'window' ? 10_000 : 0;
          const armed = await eventually(`both armed\n${said(daemon)}`, lifetimeMs + 4 * ms, () => {
            const lines = daemon.logged('armed');
            return lines.length === markets.length ? lines : null;
          });
          const lastMs = Math.max(...armed.map(({ time }) => Date.parse(time)));
          expect(lastMs - first.atMs, `${ms} ms`).toBeLessThanOrEqual(lifetimeMs + 3 * ms);
          daemon.signal('SIGTERM');
          expect(await daemon.exit(20_000), said(daemon)).toMatchObject({ code: 0 });
          const events = await exchange.events();
          const deleted = ofKind(events, 'timer-deleted').map(({ market }) => market);
          expect(new Set(deleted)).toEqual(new Set(markets.map(({ market }) => market)));
          expect(ofKind(events, 'timer-fired')).toEqual([]);
        }),
      );
    });
});
