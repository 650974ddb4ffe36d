import perfHooks from 'node:perf_hooks';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { CERTAINTIES, HOLDS, SUSPENSIONS } from '../../src/core/notice.ts';
import { FAILURE_REASONS } from '../../src/core/outcome.ts';
import { MARKET_STATES } from '../../src/core/snapshot.ts';
import type { Clock } from '../../src/ports.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { EVERY_NOTICE } from './every-notice.ts';
import { scrape } from './scrape.ts';
import { createSlowClock } from './slow-clock.ts';

const BASE = 'http://127.0.0.1:1';
const clock = createSystemClock();

function create(markets = ['BTC_USDT'], on: Clock = clock): Metrics {
  return createMetrics({
    version: '1.2.3',
    revision: 'abc',
    nodeVersion: 'v24',
    markets: markets.map((market) => ({ market, bot: 'maker', types: null, timeoutSeconds: 60 })),
    bases: [BASE],
    bots: ['maker', 'main'],
    controlReasons: ['foreign_origin', 'no_token'],
    policy: 'delete',
    shard: { index: 0, count: 1, markets: 2, fleet: 2 },
    clock: on,
  });
}

describe('metrics', () => {
  let metrics: Metrics;
  beforeEach(() => {
    metrics = create();
  });

  test('every series of a market is there before anything has happened', async () => {
    const samples = await scrape(metrics);
    const at = (name: string, more = '') => samples.get(`killswitch_${name}{market="BTC_USDT"${more}}`);
    for (const reason of FAILURE_REASONS) expect(at('renewal_failures_total', `,reason="${reason}"`)).toBe(0);
    for (const certainty of CERTAINTIES) expect(at('lapses_total', `,certainty="${certainty}"`)).toBe(0);
    for (const reason of SUSPENSIONS) expect(at('suspensions_total', `,reason="${reason}"`)).toBe(0);
    for (const state of MARKET_STATES) expect(at('market_state', `,state="${state}"`)).toBe(0);
    for (const reason of HOLDS) {
      expect(at('market_held', `,reason="${reason}"`)).toBe(0);
      expect(at('holds_total', `,reason="${reason}"`)).toBe(0);
    }
    for (const name of [
      'renewals',
      'renewal_attempts',
      'overdue',
      'deletes',
      'delete_failures',
      'refusals',
      'trips',
      'trip_failures',
    ]) {
      expect(at(`${name}_total`), name).toBe(0);
    }
    expect(at('timer_expiry_timestamp_seconds')).toBe(0);
    expect(at('timer_timeout_seconds')).toBe(60);
    const info = '{market="BTC_USDT",bot="maker",order_types="all",policy="delete"}';
    expect(samples.get(`killswitch_market_info${info}`)).toBe(1);
    expect(samples.get(`killswitch_ping_failures_total{base="${BASE}",reason="dns"}`)).toBe(0);
    expect(samples.get('killswitch_log_messages_total{level="error"}')).toBe(0);
    for (const reason of ['foreign_origin', 'no_token']) {
      expect(samples.get(`killswitch_control_refused_total{reason="${reason}"}`)).toBe(0);
    }
    for (const how of ['deleted', 'kept', 'fired']) {
      expect(samples.get(`killswitch_markets_removed_total{how="${how}"}`)).toBe(0);
    }
    expect(samples.get('killswitch_config_hash')).toBe(0);
    expect(samples.get('killswitch_config_reloads_total')).toBe(0);
    expect(samples.get('killswitch_config_reload_failures_total')).toBe(0);
    for (const state of ['starting', 'alive', 'stale', 'goodbye', 'failed']) {
      expect(samples.get(`killswitch_bot_changes_total{bot="maker",state="${state}"}`)).toBe(0);
      expect(samples.get(`killswitch_bot_state{bot="maker",state="${state}"}`)).toBe(0);
    }
    expect(samples.get('killswitch_bot_beats_total{bot="maker"}')).toBe(0);
    expect(samples.get('killswitch_bot_beats_refused_total{bot="maker"}')).toBe(0);
    expect(samples.get('killswitch_build_info{version="1.2.3",revision="abc",node_version="v24"}')).toBe(1);
  });

  test('every kind of notice moves what it should and nothing throws', async () => {
    const now = clock.now();
    for (const notice of Object.values(EVERY_NOTICE)) metrics.observe(notice, now);
    const samples = await scrape(metrics);
    const expected: Record<string, number> = {
      'renewal_attempts_total{market="BTC_USDT"}': 1,
      'renewals_total{market="BTC_USDT"}': 1,
      'renewal_failures_total{market="BTC_USDT",reason="timeout"}': 1,
      'lapses_total{market="BTC_USDT",certainty="certain"}': 1,
      'overdue_total{market="BTC_USDT"}': 1,
      'suspensions_total{market="BTC_USDT",reason="bot_stale"}': 1,
      'refusals_total{market="BTC_USDT"}': 1,
      'altered_replies_total{market="BTC_USDT"}': 1,
      'deletes_total{market="BTC_USDT"}': 1,
      'delete_failures_total{market="BTC_USDT"}': 0,
      'holds_total{market="BTC_USDT",reason="paused"}': 1,
      'trips_total{market="BTC_USDT"}': 1,
      'markets_removed_total{how="deleted"}': 1,
      renewal_duration_seconds_count: 1,
      renewal_duration_seconds_sum: 0.02,
      trip_duration_seconds_count: 1,
      trip_duration_seconds_sum: 0.018,
      renewal_cycle_duration_seconds_sum: 0.03,
      'renewal_slack_ratio_bucket{le="0.9"}': 1,
      'renewal_slack_ratio_bucket{le="0.8"}': 0,
      schedule_delay_seconds_count: 1,
      clock_skew_seconds: -0.12,
      unauthorised_total: 1,
      authorised: 1,
      [`outages_total{base="${BASE}"}`]: 1,
      [`outage_seconds_sum{base="${BASE}"}`]: 31,
      throttled_total: 1,
      cadence_factor: 1.5,
      capacity_requests_per_second: 100,
      'stalls_total{kind="stall"}': 1,
      'stall_seconds_sum{kind="stall"}': 2.5,
      'bot_changes_total{bot="maker",state="stale"}': 1,
      limiter_bypasses_total: 3,
      [`ping_attempts_total{base="${BASE}"}`]: 1,
      [`ping_failures_total{base="${BASE}",reason="timeout"}`]: 1,
      [`ping_duration_seconds_count{base="${BASE}"}`]: 0,
      [`api_up{base="${BASE}"}`]: 0,
    };
    for (const [name, value] of Object.entries(expected)) {
      expect(samples.get(`killswitch_${name}`), name).toBe(value);
    }
  });

  test('a failed delete counts as a failed delete, not as a failed renewal', async () => {
    metrics.observe({ ...EVERY_NOTICE['attempt-failed'], purpose: 'delete' }, clock.now());
    metrics.observe({ ...EVERY_NOTICE.attempt, purpose: 'delete' }, clock.now());
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_delete_failures_total{market="BTC_USDT"}')).toBe(1);
    expect(samples.get('killswitch_renewal_failures_total{market="BTC_USDT",reason="timeout"}')).toBe(0);
    expect(samples.get('killswitch_renewal_attempts_total{market="BTC_USDT"}')).toBe(0);
  });

  test('a trip counts as a trip, and leaves attempts, failures and successes of renewals consistent', async () => {
    const now = clock.now();
    metrics.observe({ ...EVERY_NOTICE.attempt, purpose: 'trip' }, now);
    metrics.observe({ ...EVERY_NOTICE['attempt-failed'], purpose: 'trip' }, now);
    metrics.observe({ ...EVERY_NOTICE.attempt, purpose: 'trip' }, now);
    metrics.observe(EVERY_NOTICE.tripped, now);
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_trips_total{market="BTC_USDT"}')).toBe(1);
    expect(samples.get('killswitch_trip_failures_total{market="BTC_USDT"}')).toBe(1);
    expect(samples.get('killswitch_renewal_attempts_total{market="BTC_USDT"}')).toBe(0);
    expect(samples.get('killswitch_renewal_failures_total{market="BTC_USDT",reason="timeout"}')).toBe(0);
    expect(samples.get('killswitch_renewals_total{market="BTC_USDT"}')).toBe(0);
    expect(samples.get('killswitch_renewal_slack_ratio_count')).toBe(0);
    // How late it was written is of interest all the more.
    expect(samples.get('killswitch_schedule_delay_seconds_count')).toBe(2);
  });

  test('the expiry after a trip is that of the trip, and who holds the market is shown until nobody does', async () => {
    const now = { ...clock.now(), wallMs: 1_795_000_000_000 };
    const held = (why: (typeof HOLDS)[number], untilWallMs: number | null) =>
      sampleMarket({ state: 'disarmed', wanted: false, hold: { why, untilWallMs } });
    const reasonsHeld = (samples: Map<string, number>) =>
      HOLDS.filter(
        (reason) => samples.get(`killswitch_market_held{market="BTC_USDT",reason="${reason}"}`) === 1,
      );
    const tripped = { ...held('tripped', null), expiryWallMs: 1_795_000_005_000 };
    metrics.refresh(sampleSnapshot({ markets: [tripped] }), now);
    const first = await scrape(metrics);
    expect(first.get('killswitch_timer_expiry_timestamp_seconds{market="BTC_USDT"}')).toBe(1_795_000_005);
    expect(reasonsHeld(first)).toEqual(['tripped']);
    metrics.refresh(sampleSnapshot({ markets: [held('paused', 1_795_000_600_000)] }), now);
    expect(reasonsHeld(await scrape(metrics))).toEqual(['paused']);
    metrics.refresh(sampleSnapshot(), now);
    expect(reasonsHeld(await scrape(metrics))).toEqual([]);
  });

  test('beats are counted by bot, and how far apart they were', async () => {
    let monoMs = 0;
    metrics = create(['BTC_USDT'], { ...clock, now: () => ({ ...clock.now(), monoMs }) });
    for (const atMs of [0, 1000, 3500]) {
      monoMs = atMs;
      metrics.beatHeard('maker');
    }
    metrics.beatHeard('main');
    metrics.beatRefused('maker');
    metrics.beatRefused('nobody');
    metrics.beatHeard('nobody');
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_bot_beats_total{bot="maker"}')).toBe(3);
    expect(samples.get('killswitch_bot_beats_total{bot="main"}')).toBe(1);
    expect(samples.get('killswitch_bot_beats_refused_total{bot="maker"}')).toBe(1);
    expect(samples.get('killswitch_bot_beat_gap_seconds_count')).toBe(2);
    expect(samples.get('killswitch_bot_beat_gap_seconds_sum')).toBe(3.5);
    expect([...samples.keys()].filter((name) => name.includes('nobody'))).toEqual([]);
  });

  test('a scrape shows the state of the snapshot it was given, and the next one its successor', async () => {
    const now = { ...clock.now(), wallMs: 1_795_000_010_000 };
    metrics.refresh(sampleSnapshot(), now);
    const first = await scrape(metrics);
    expect(first.get('killswitch_market_state{market="BTC_USDT",state="armed"}')).toBe(1);
    expect(first.get('killswitch_timer_expiry_timestamp_seconds{market="BTC_USDT"}')).toBe(1_795_000_060);
    expect(first.get('killswitch_timer_server_expiry_timestamp_seconds{market="BTC_USDT"}')).toBe(
      1_795_000_060,
    );
    expect(first.get('killswitch_market_armed_desired{market="BTC_USDT"}')).toBe(1);
    expect(first.get('killswitch_survivable_outage_seconds{market="BTC_USDT"}')).toBeCloseTo(52.7, 0);
    expect(first.get('killswitch_ready')).toBe(1);
    expect(first.get('killswitch_bot_last_evidence_timestamp_seconds{bot="main"}')).toBe(1_795_000_008.8);
    expect(first.get('killswitch_bot_info{bot="main",mode="beat"}')).toBe(1);
    expect(first.get('killswitch_bot_state{bot="main",state="alive"}')).toBe(1);
    expect(first.get('killswitch_bot_evidence_ttl_seconds{bot="main"}')).toBe(15);

    const deleted = sampleMarket({ state: 'deleted', wanted: false, expiryWallMs: null });
    metrics.refresh(sampleSnapshot({ ready: false, markets: [deleted] }), now);
    const second = await scrape(metrics);
    expect(second.get('killswitch_market_state{market="BTC_USDT",state="armed"}')).toBe(0);
    expect(second.get('killswitch_market_state{market="BTC_USDT",state="deleted"}')).toBe(1);
    expect(second.get('killswitch_timer_expiry_timestamp_seconds{market="BTC_USDT"}')).toBe(0);
    expect(second.get('killswitch_ready')).toBe(0);
  });

  test('the number of markets does not change how a page reads', async () => {
    const names = Array.from({ length: 230 }, (_, index) => `M${index}_USDT`);
    metrics = create(names);
    for (const market of names) metrics.observe({ ...EVERY_NOTICE.renewed, market }, clock.now());
    const page = await metrics.render();
    for (const market of names) expect(page).toContain(`killswitch_renewals_total{market="${market}"} 1\n`);
    const families = [...page.matchAll(/^# TYPE (\S+) /gm)].map((match) => match[1]);
    expect(new Set(families).size).toBe(families.length);
    // All samples of a metric stand together under its HELP and TYPE.
    let family = '';
    for (const line of page.split('\n')) {
      family = /^# TYPE (\S+) /.exec(line)?.[1] ?? family;
      if (line !== '' && !line.startsWith('#'))
        expect(line.startsWith(family), `${line} in ${family}`).toBe(true);
    }
  });

  test('a scrape of many markets gives the event loop back in between', async () => {
    const slow = createSlowClock(clock);
    await create(
      Array.from({ length: 500 }, (_, index) => `M${index}_USDT`),
      slow,
    ).renderPage();
    expect(slow.pauses).toBeGreaterThan(20);
  });

  test('two scrapes at the same time read the same', async () => {
    const [one, other] = await Promise.all([metrics.render(), metrics.render()]);
    const own = (page: string) => page.split('\n').filter((line) => line.startsWith('killswitch_'));
    expect(own(one)).toEqual(own(other));
  });

  test("how late the loop woke up is counted, and Node's sampler that wakes it all the time shows nothing", async () => {
    metrics.wokeUp(-0.4);
    metrics.wokeUp(30);
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_wake_delay_seconds_bucket{le="0.001"}')).toBe(1);
    expect(samples.get('killswitch_wake_delay_seconds_bucket{le="0.025"}')).toBe(1);
    expect(samples.get('killswitch_wake_delay_seconds_bucket{le="0.04"}')).toBe(2);
    expect([...samples.keys()].filter((name) => name.startsWith('nodejs_eventloop_lag_'))).toEqual([]);
    const sampler = vi.spyOn(perfHooks, 'monitorEventLoopDelay');
    create(['BTC_USDT']);
    expect(sampler.mock.calls.map(([asked]) => asked?.resolution ?? 10)).toEqual([3_600_000]);
  });

  test('log lines are counted, and the configuration of the start was a success', async () => {
    metrics.countLogLine('error');
    metrics.countDroppedLogLine();
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_log_messages_total{level="error"}')).toBe(1);
    expect(samples.get('killswitch_log_dropped_total')).toBe(1);
    expect(samples.get('killswitch_config_last_reload_successful')).toBe(1);
    expect(samples.get('killswitch_config_last_reload_success_timestamp_seconds')).toBeGreaterThan(1e9);
  });

  test('names follow the rules of Prometheus', async () => {
    const page = await metrics.render();
    for (const [, name = '', type] of page.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter');
      if (name.startsWith('killswitch_'))
        expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|percent)(_|$)/);
    }
    expect(page).not.toMatch(/_(bucket|sum|count)\{[^}]*market=/);
    expect(metrics.contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(page.endsWith('\n')).toBe(true);
  });
});
