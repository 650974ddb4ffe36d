import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import type { Clock } from '../../src/ports.ts';
import type { MeteredMarket } from '../../src/telemetry/market-metrics.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { EVERY_NOTICE } from './every-notice.ts';
import { scrape } from './scrape.ts';
import { createSlowClock } from './slow-clock.ts';

const clock = createSystemClock();
const metered = (market: string): MeteredMarket => ({
  market,
  bot: 'maker',
  types: null,
  timeoutSeconds: 60,
});
const named = (count: number, prefix = 'M') =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}_USDT`);

function create(markets: readonly string[], bots: readonly string[] = ['maker'], on: Clock = clock): Metrics {
  return createMetrics({
    version: '1.2.3',
    revision: 'abc',
    nodeVersion: 'v24',
    markets: markets.map(metered),
    bases: ['http://127.0.0.1:1'],
    bots,
    policy: 'delete',
    shard: { index: 0, count: 1, markets: 2, fleet: 2 },
    clock: on,
  });
}

function reconfigure(metrics: Metrics, markets: readonly string[], bots: readonly string[] = ['maker']) {
  return metrics.reconfigure({
    markets: markets.map(metered),
    bots,
    policy: 'delete',
    shard: { index: 0, count: 1, markets: 2, fleet: 2 },
  });
}

function left(metrics: Metrics, market: string): void {
  metrics.observe({ kind: 'removed', market, how: 'deleted' }, clock.now());
}

describe('metrics after a reload', () => {
  test('a market that left is shown until its timer is gone, and then leaves no series in any shard', async () => {
    const markets = named(230);
    const metrics = create(markets);
    const leaves = (_: string, index: number) => index % 7 === 0;
    const leaving = markets.filter(leaves);
    const staying = markets.filter((market, index) => !leaves(market, index));
    for (const market of markets) metrics.observe({ ...EVERY_NOTICE.renewed, market }, clock.now());
    const snapshot = sampleSnapshot({ markets: markets.map((market) => sampleMarket({ market })) });
    metrics.refresh(snapshot, clock.now());

    await reconfigure(metrics, staying);
    for (const market of leaving) metrics.observe({ ...EVERY_NOTICE.held, market }, clock.now());
    metrics.refresh(snapshot, clock.now());
    const meanwhile = await scrape(metrics);
    for (const market of leaving) {
      expect(meanwhile.get(`killswitch_market_state{market="${market}",state="armed"}`)).toBe(1);
      expect(meanwhile.get(`killswitch_renewals_total{market="${market}"}`)).toBe(1);
    }

    for (const market of leaving) left(metrics, market);
    for (const market of leaving) metrics.observe({ ...EVERY_NOTICE.lapsed, market }, clock.now());
    const page = await metrics.render();
    const shown = new Set([...page.matchAll(/market="([^"]+)"/g)].map(([, market = '']) => market));
    expect([...shown].toSorted()).toEqual(staying.toSorted());
    const after = await scrape(metrics);
    for (const market of staying) {
      expect(after.get(`killswitch_renewals_total{market="${market}"}`), market).toBe(1);
    }
    expect(after.get('killswitch_markets_removed_total{how="deleted"}')).toBe(leaving.length);
  });

  test('every series of a new market is there with 0 before anything has happened to it', async () => {
    const metrics = create(['BTC_USDT']);
    const seriesOf = (samples: Map<string, number>, market: string) =>
      [...samples].filter(([name]) => name.includes(`market="${market}"`));
    await reconfigure(metrics, ['BTC_USDT', 'SOL_USDT']);
    const samples = await scrape(metrics);
    expect(seriesOf(samples, 'SOL_USDT').map(([name]) => name.replace('SOL', 'BTC'))).toEqual(
      seriesOf(samples, 'BTC_USDT').map(([name]) => name),
    );
    expect(samples.get('killswitch_trips_total{market="SOL_USDT"}')).toBe(0);
    metrics.observe({ ...EVERY_NOTICE.renewed, market: 'SOL_USDT' }, clock.now());
    expect((await scrape(metrics)).get('killswitch_renewals_total{market="SOL_USDT"}')).toBe(1);
  });

  test('a market that changed keeps its counters, and timeout, bot, order types and policy follow', async () => {
    const metrics = create(['BTC_USDT']);
    metrics.observe(EVERY_NOTICE.lapsed, clock.now());
    await metrics.reconfigure({
      markets: [{ market: 'BTC_USDT', bot: 'taker', types: ['spot', 'margin'], timeoutSeconds: 30 }],
      bots: ['maker'],
      policy: 'keep',
      shard: { index: 0, count: 1, markets: 2, fleet: 2 },
    });
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_timer_timeout_seconds{market="BTC_USDT"}')).toBe(30);
    expect(samples.get('killswitch_lapses_total{market="BTC_USDT",certainty="certain"}')).toBe(1);
    const infos = [...samples.keys()].filter((name) => name.startsWith('killswitch_market_info'));
    expect(infos).toEqual([
      'killswitch_market_info{market="BTC_USDT",bot="taker",order_types="spot+margin",policy="keep"}',
    ]);
  });

  test('a market that comes back before its timer is gone goes on counting', async () => {
    const metrics = create(['BTC_USDT', 'ETH_USDT']);
    metrics.observe(EVERY_NOTICE.renewed, clock.now());
    await reconfigure(metrics, ['ETH_USDT']);
    await reconfigure(metrics, ['ETH_USDT', 'BTC_USDT']);
    left(metrics, 'BTC_USDT');
    expect((await scrape(metrics)).get('killswitch_renewals_total{market="BTC_USDT"}')).toBe(1);
  });

  test('a market that comes back after it had gone begins at 0', async () => {
    const metrics = create(['BTC_USDT', 'ETH_USDT']);
    metrics.observe(EVERY_NOTICE.renewed, clock.now());
    await reconfigure(metrics, ['ETH_USDT']);
    left(metrics, 'BTC_USDT');
    await reconfigure(metrics, ['ETH_USDT', 'BTC_USDT']);
    expect((await scrape(metrics)).get('killswitch_renewals_total{market="BTC_USDT"}')).toBe(0);
  });

  test('a market that had gone before the metrics were told of the reload leaves nothing behind', async () => {
    const metrics = create(['BTC_USDT', 'ETH_USDT']);
    left(metrics, 'BTC_USDT');
    await reconfigure(metrics, ['ETH_USDT']);
    metrics.refresh(sampleSnapshot({ markets: [sampleMarket({ market: 'ETH_USDT' })] }), clock.now());
    expect(await metrics.render()).not.toContain('BTC_USDT');
  });

  test('two reloads at once end with what the second one wants', async () => {
    const metrics = create(['BTC_USDT']);
    await Promise.all([
      reconfigure(metrics, named(300)),
      reconfigure(metrics, named(300, 'N')),
      reconfigure(metrics, ['BTC_USDT']),
    ]);
    metrics.refresh(sampleSnapshot(), clock.now());
    const shown = [...(await metrics.render()).matchAll(/market="([^"]+)"/g)].map(([, market]) => market);
    expect(new Set(shown)).toEqual(new Set(['BTC_USDT']));
  });

  test('a bot is shown as long as it is configured or guards a market that is leaving', async () => {
    const metrics = create(['BTC_USDT', 'ETH_USDT'], ['maker', 'taker']);
    const bot = (name: string) => ({
      bot: name,
      mode: 'beat',
      state: 'alive' as const,
      evidenceAgeMs: 1000,
      ttlMs: 15_000,
    });
    metrics.beatHeard('taker');
    metrics.refresh(sampleSnapshot({ bots: [bot('maker'), bot('taker')] }), clock.now());
    await reconfigure(metrics, ['BTC_USDT'], ['maker', 'hedger']);
    metrics.refresh(sampleSnapshot({ bots: [bot('maker'), bot('taker'), bot('hedger')] }), clock.now());
    const meanwhile = await scrape(metrics);
    expect(meanwhile.get('killswitch_bot_alive{bot="taker"}')).toBe(1);
    expect(meanwhile.get('killswitch_bot_beats_total{bot="taker"}')).toBe(1);
    expect(meanwhile.get('killswitch_bot_beats_total{bot="hedger"}')).toBe(0);

    metrics.refresh(sampleSnapshot({ bots: [bot('maker'), bot('hedger')] }), clock.now());
    metrics.beatHeard('taker');
    metrics.beatRefused('taker');
    metrics.observe({ ...EVERY_NOTICE.bot, bot: 'taker' }, clock.now());
    expect(await metrics.render()).not.toContain('taker');
  });

  test('a reload, and the scrape that clears up after one, give the event loop back in between', async () => {
    const slow = createSlowClock(clock);
    const metrics = create(['BTC_USDT'], ['maker'], slow);
    await reconfigure(metrics, named(400));
    expect(slow.pauses).toBeGreaterThan(400 / 4);
    await reconfigure(metrics, ['BTC_USDT']);
    for (const market of named(400)) left(metrics, market);
    slow.pauses = 0;
    await metrics.renderPage();
    expect(slow.pauses).toBeGreaterThan(400 / 4);
  });
});
