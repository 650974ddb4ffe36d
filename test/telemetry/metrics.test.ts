import perfHooks from 'node:perf_hooks';
import { beforeEach, expect, test, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { HOLDS } from '../../src/core/notice.ts';
import { MARKET_STATES } from '../../src/core/view.ts';
import type { Clock } from '../../src/ports.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { sampleBot, sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { EVERY_NOTICE } from './every-notice.ts';
import { metricsOf, renderPage, scrape } from './scrape.ts';

const BASE = 'http://127.0.0.1:1';
const clock = createSystemClock();

const ofMarket = (samples: ReadonlyMap<string, number>, market: string) =>
  [...samples.keys()].filter((name) => name.includes(`market="${market}"`));

/** Every sample of this program but moments and the buckets of histograms. `-u` writes the files with them anew. */
const figuresOf = (samples: ReadonlyMap<string, number>) =>
  [...samples]
    .filter(([name]) => /^killswitch_(?!config_last_\w+_seconds|bot_last_|\w+_bucket\{)/.test(name))
    .map(([name, value]) => `${name} ${value}\n`)
    .join('');

/** The figures that are not among those of before. */
const movedFrom = (before: string, samples: ReadonlyMap<string, number>) => {
  const known = before.split('\n');
  const moved = figuresOf(samples).split('\n');
  return `${moved.filter((line) => !known.includes(line)).join('\n')}\n`;
};

let metrics: Metrics;
beforeEach(() => {
  metrics = metricsOf();
});

test('every series is there before anything has happened, ten of each market', async () => {
  const samples = await scrape(metrics);
  expect(ofMarket(samples, 'BTC_USDT')).toHaveLength(10);
  expect(samples.get('killswitch_config_last_reload_success_timestamp_seconds')).toBeGreaterThan(1e9);
  await expect(figuresOf(samples)).toMatchFileSnapshot('metrics-at-start.txt');
});

test('a market has one state, the reason of its hold, and no expiry without a timer', async () => {
  const states = MARKET_STATES.map((state) => sampleMarket({ market: state, state }));
  const held = HOLDS.map((why) => sampleMarket({ market: `M_${why}`, hold: { why, untilWallMs: null } }));
  const never = sampleMarket({ market: 'NEW', expiryWallMs: null, lastSlackRatio: null });
  const markets = [...states, ...held, never];
  const samples = await scrape(metrics, sampleSnapshot({ markets }));
  const shown = [...samples].filter(([name]) => /^killswitch_market_(state|held)\{/.test(name));
  const expected = markets.flatMap(({ market, state, hold }): [string, number][] => [
    [`killswitch_market_state{market="${market}",state="${state}"}`, 1],
    [`killswitch_market_held{market="${market}",reason="${hold?.why ?? 'none'}"}`, hold === null ? 0 : 1],
  ]);
  expect(new Map(shown)).toEqual(new Map(expected));
  expect(samples.get('killswitch_timer_expiry_timestamp_seconds{market="NEW"}')).toBe(0);
  expect(samples.get('killswitch_renewal_last_slack_ratio{market="NEW"}')).toBe(1);
});

test('every kind of notice moves what it should and nothing throws', async () => {
  const now = clock.now();
  const before = figuresOf(await scrape(metrics));
  for (const notice of Object.values(EVERY_NOTICE)) metrics.observe(notice, now);
  metrics.observe({ ...EVERY_NOTICE['attempt-failed'], purpose: 'delete' }, now);
  // A delete is written when it may be, and is never late: no delay is counted.
  metrics.observe({ ...EVERY_NOTICE.attempt, purpose: 'delete' }, now);
  metrics.observe({ ...EVERY_NOTICE.attempt, purpose: 'trip' }, now);
  metrics.observe({ ...EVERY_NOTICE.bot, bot: 'nobody' }, now);
  const samples = await scrape(metrics);
  await expect(movedFrom(before, samples)).toMatchFileSnapshot('metrics-moved.txt');
  expect(samples.get('killswitch_renewal_slack_ratio_bucket{le="0.9"}')).toBe(1);
  expect(samples.get('killswitch_renewal_slack_ratio_bucket{le="0.8"}')).toBe(0);
});

test('the state of the daemon, its bots and the exchange is that of the snapshot', async () => {
  const before = figuresOf(await scrape(metrics));
  const ill = sampleSnapshot({
    ready: false,
    authorised: false,
    cadenceFactor: 1.5,
    bases: [{ url: BASE, up: null, pingMs: null, lastProblem: null, used: true, outage: true }],
    bots: [sampleBot({ state: 'stale', evidenceAgeMs: null })],
    markets: [sampleMarket({ wanted: false })],
  });
  const seen = await scrape(metrics, ill);
  await expect(movedFrom(before, seen)).toMatchFileSnapshot('metrics-in-outage.txt');
  const evidence = 'killswitch_bot_last_evidence_timestamp_seconds{bot="main"}';
  expect(seen.get(evidence)).toBe(0);
  expect((await scrape(metrics)).get(evidence)).toBe(1_795_000_008.8);
});

test('beats are counted by bot, and how far apart they are to within a tenth', async () => {
  let monoMs = 0;
  metrics = metricsOf({ clock: { ...clock, now: () => ({ ...clock.now(), monoMs }) } });
  for (let beat = 0; beat < 100; beat += 1) {
    monoMs += 1000 + (beat % 3);
    metrics.beat('maker', true);
  }
  for (const [bot, counted] of [
    ['main', true],
    ['maker', false],
    ['nobody', false],
    ['nobody', true],
  ] as const)
    metrics.beat(bot, counted);
  const samples = await scrape(metrics);
  const figures = ['beats_total{bot="maker"}', 'beats_total{bot="main"}', 'beats_refused_total{bot="maker"}'];
  expect(figures.map((name) => samples.get(`killswitch_bot_${name}`))).toEqual([100, 1, 1]);
  expect(samples.get('killswitch_bot_beat_gap_seconds_bucket{le="0.8"}')).toBe(0);
  expect(samples.get('killswitch_bot_beat_gap_seconds_bucket{le="1.1"}')).toBe(99);
});

test('a reload gives new bots their series, and takes those of bots that left', async () => {
  metrics.beat('main', true);
  metrics.reconfigure({ index: 0, count: 1, markets: 3, fleet: 4 });
  const samples = await scrape(metrics, sampleSnapshot({ bots: [sampleBot(), sampleBot({ bot: 'taker' })] }));
  expect(samples.get('killswitch_bot_beats_total{bot="main"}')).toBe(1);
  expect(samples.get('killswitch_bot_beats_total{bot="taker"}')).toBe(0);
  expect(samples.get('killswitch_shard_markets')).toBe(3);
  expect([...samples.keys()].filter((name) => name.includes('maker'))).toEqual([]);
});

test('the lines of many markets stand under one header each, as text and in OpenMetrics at the same time', async () => {
  const names = Array.from({ length: 1200 }, (_, index) => `M${index}_USDT`);
  const many = sampleSnapshot({ markets: names.map((market) => sampleMarket({ market })) });
  const pages = await Promise.all([false, true].map((open) => renderPage(metrics, many, open)));
  for (const page of pages) {
    for (const market of names) expect(page).toContain(`killswitch_renewals_total{market="${market}"} 42\n`);
    const families = [...page.matchAll(/^# TYPE (\S+) /gm)].map((match) => match[1]);
    expect(new Set(families).size).toBe(families.length);
    let family = '';
    for (const line of page.split('\n').slice(0, -1)) {
      family = /^# TYPE (\S+) /.exec(line)?.[1] ?? family;
      if (!line.startsWith('#')) expect(line.startsWith(family), `${line} in ${family}`).toBe(true);
    }
  }
  const [text = '', open = ''] = pages;
  expect(text).toContain('# TYPE killswitch_renewals_total counter\n');
  expect(open).toContain('# TYPE killswitch_renewals counter\n');
  expect([text.endsWith('# EOF\n'), open.endsWith('\n# EOF\n')]).toEqual([false, true]);
});

test('a scrape of many markets gives the event loop back in between', async () => {
  let monoMs = 0;
  let pauses = 0;
  // Every look at this clock takes a millisecond.
  const now = () => ({ ...clock.now(), monoMs: monoMs++ });
  const after: Clock['after'] = (delayMs, run) => {
    pauses += 1;
    return clock.after(delayMs, run);
  };
  metrics = metricsOf({ clock: { now, after } });
  const markets = Array.from({ length: 2000 }, (_, index) => sampleMarket({ market: `M${index}` }));
  await renderPage(metrics, sampleSnapshot({ markets }));
  expect(pauses).toBeGreaterThan(30);
});

test("how late the loop woke up is counted, and Node's sampler that wakes it all the time is off", async () => {
  const sampler = vi.spyOn(perfHooks, 'monitorEventLoopDelay');
  metrics = metricsOf();
  expect(sampler.mock.calls.map(([asked]) => asked?.resolution ?? 10)).toEqual([3_600_000]);
  metrics.wokeUp(-0.4);
  metrics.wokeUp(30);
  const samples = await scrape(metrics);
  const counts = [0.001, 0.025, 0.04].map((le) =>
    samples.get(`killswitch_wake_delay_seconds_bucket{le="${le}"}`),
  );
  expect(counts).toEqual([1, 1, 2]);
  expect([...samples.keys()].filter((name) => name.startsWith('nodejs_eventloop_lag_'))).toEqual([]);
});

test('names follow the rules of Prometheus', async () => {
  const page = await renderPage(metrics);
  for (const [, name = '', type] of page.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter');
    if (name.startsWith('killswitch_'))
      expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|percent)(_|$)/);
  }
  expect(page).not.toMatch(/_(bucket|sum|count)\{[^}]*market=/);
});
