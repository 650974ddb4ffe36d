import { describe, expect, test } from 'vitest';
import { stageFor } from './harness.ts';
import { sleep } from './program.ts';
import { longestGapMs, ofKind, renewalsOf } from './simulated-exchange.ts';

const WELL = ['AAA_USDT', 'BBB_USDT'];
const SICK = 'CCC_USDT';
/** At T = 10 a market is renewed every second; the rest is for a busy machine. */
const LONGEST_GAP_MS = 1000 + 750;
const WATCH_MS = 7000;

describe.concurrent('the renewals of a market do not move', { timeout: 60_000 }, () => {
  const markets = [...WELL, SICK].map((market) => ({ market, timeoutSeconds: 10 }));

  test('because the exchange does not know another one, which is asked about no more than once a minute', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange(['--listen', '127.0.0.1:0', '--markets', WELL.join(',')]);
    const daemon = await stage.daemon({ exchange: exchange.url, markets });
    await exchange.event('request-refused', 15_000);
    const fromMs = await exchange.nowMs();
    await sleep(WATCH_MS);
    const events = await exchange.events();
    const toMs = await exchange.nowMs();
    for (const market of WELL) {
      expect(longestGapMs(events, market, fromMs, toMs)).toBeLessThanOrEqual(LONGEST_GAP_MS);
    }
    expect(ofKind(events, 'request-refused')).toMatchObject([{ market: SICK, code: 31 }]);
    expect(daemon.marketsLogged('refused')).toEqual([SICK]);
    const { status, body } = await daemon.get('/readyz?verbose');
    expect(status).toBe(503);
    expect(body).toContain('[+]timer/AAA_USDT ok');
    expect(body).toMatch(/\[-\]timer\/CCC_USDT failed: .*Market is not available/);
  });

  test('because the requests of another one hang; that one is armed again when they no longer do', async (context) => {
    const stage = stageFor(context);
    const exchange = await stage.exchange();
    const daemon = await stage.daemon({ exchange: exchange.url, markets });
    await daemon.ready();
    await exchange.addFaults({ kind: 'hang', mode: 'hold', match: { market: SICK } });
    await exchange.event('fault-applied', 5000);
    const fromMs = await exchange.nowMs();
    await sleep(WATCH_MS);
    const events = await exchange.events();
    const toMs = await exchange.nowMs();
    for (const market of WELL) {
      expect(longestGapMs(events, market, fromMs, toMs)).toBeLessThanOrEqual(LONGEST_GAP_MS);
      expect(await daemon.metric('killswitch_renewal_failures_total', { market })).toBe(0);
    }
    expect(renewalsOf(events, SICK).filter((atMs) => atMs > fromMs)).toEqual([]);
    expect(await daemon.metric('killswitch_outages_total')).toBe(0);
    await exchange.clearFaults();
    await daemon.ready();
    const clearedMs = (await exchange.event('faults-cleared', 1000)).atMs;
    await sleep(1500);
    expect(renewalsOf(await exchange.events(), SICK).filter((atMs) => atMs > clearedMs)).not.toEqual([]);
  });
});
