import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

/** How often a market is renewed whose timeout is 10 s or less. */
const PERIOD_MS = 1000;

describe.concurrent('no renewal moves', { timeout: 60_000 }, () => {
  test('because the exchange does not know another market, or because the requests of another one hang', async (context) => {
    const well = ['AAA_USDT', 'BBB_USDT'];
    const hanging = 'CCC_USDT';
    const unknown = 'DDD_USDT';
    const stage = stageFor(context);
    const exchange = await stage.exchange({ markets: [...well, hanging] });
    const daemon = await stage.daemon({
      exchange: exchange.url,
      markets: [...well, hanging, unknown].map((market) => ({ market, timeoutSeconds: 10 })),
    });
    await exchange.event('request-refused', 15_000);
    await sleep(1000);
    await exchange.addFaults({ kind: 'hang', mode: 'hold', match: { market: hanging } });
    await exchange.event('fault-applied', 5000);
    const fromMs = await exchange.nowMs();
    await sleep(7000);
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    for (const market of well) {
      expect(longestGapMs(events, market, fromMs, toMs)).toBeLessThanOrEqual(PERIOD_MS + 750);
      expect(await daemon.metric('killswitch_renewal_failures_total', { market })).toBe(0);
    }
    expect(await daemon.metric('killswitch_outages_total')).toBe(0);

    // Asked about no more than once a minute.
    expect(ofKind(events, 'request-refused')).toMatchObject([{ market: unknown, code: 31 }]);
    expect(daemon.marketsLogged('refused')).toEqual([unknown]);
    const { status, body } = await daemon.get('/readyz?verbose');
    expect(status).toBe(503);
    expect(body).toContain(`[+]timer/${well[0]} ok`);
    expect(body).toMatch(new RegExp(`\\[-\\]timer/${unknown} failed: .*Market is not available`));

    expect(renewalsOf(events, hanging).filter((atMs) => atMs > fromMs)).toEqual([]);
    await exchange.clearFaults();
    const { atMs: clearedMs } = await exchange.event('faults-cleared', 1000);
    await sleep(2500);
    expect(renewalsOf(await exchange.events(), hanging).filter((atMs) => atMs > clearedMs)).not.toEqual([]);
  });

  // A hundredth of the documented limit: bottleneck lets 25 requests through at a time, fewer than go out in 4 s.
  test('because the wall clock steps back and forward by an hour, with either kind of nonce', async (context) => {
    const hourMs = 3_600_000;
    const stage = stageFor(context);
    const exchange = await stage.exchangeProcess();
    const start = async (nonce: 'increasing' | 'window') => {
      const markets = ['AAA', 'BBB', 'CCC', 'DDD', 'EEE', 'FFF'].map(
        (base) => `${base}_${nonce.toUpperCase()}`,
      );
      const daemon = await stage.daemon({
        exchange: exchange.url,
        markets: markets.map((market) => ({ market, timeoutSeconds: 5 })),
        config: { exchange: { baseUrls: [exchange.url], nonce, budgetShare: 0.01 } },
        canSabotage: true,
      });
      await daemon.ready();
      return { daemon, markets };
    };
    const started = [await start('increasing'), await start('window')];
    await sleep(2000);
    const fromMs = await exchange.nowMs();
    for (const byMs of [-hourMs, hourMs, hourMs]) {
      for (const { daemon } of started) daemon.sabotage({ kind: 'step-clock', byMs });
      await sleep(4500);
    }
    const toMs = await exchange.nowMs();
    const events = await exchange.events();
    for (const { daemon, markets } of started) {
      expect(daemon.logged('clock-step')).toHaveLength(3);
      const gapsMs = markets.map((market) => longestGapMs(events, market, fromMs, toMs));
      // A renewal that waited for the wall clock would be missing altogether; one is late by what a loaded machine takes.
      expect(gapsMs.filter((gapMs) => gapMs > 2 * PERIOD_MS + 500)).toEqual([]);
      expect(await daemon.metric('killswitch_lapses_total')).toBe(0);
      await daemon.ready();
    }
    expect([...ofKind(events, 'request-refused'), ...ofKind(events, 'timer-fired')]).toEqual([]);
  });
});
