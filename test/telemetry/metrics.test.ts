import { beforeEach, describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { CERTAINTIES, SUSPENSIONS } from '../../src/core/notice.ts';
import { FAILURE_REASONS } from '../../src/core/outcome.ts';
import { MARKET_STATES } from '../../src/core/snapshot.ts';
import type { Clock } from '../../src/ports.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { sampleMarket, sampleSnapshot } from '../operator/sample-snapshot.ts';
import { EVERY_NOTICE } from './every-notice.ts';

const BASE = 'http://127.0.0.1:1';
const clock = createSystemClock();

function create(markets = ['BTC_USDT'], on: Clock = clock): Metrics {
  return createMetrics({
    version: '1.2.3',
    revision: 'abc',
    nodeVersion: 'v24',
    markets: markets.map((market) => ({ market, types: null, timeoutSeconds: 60 })),
    bases: [BASE],
    bots: ['maker'],
    policy: 'delete',
    clock: on,
  });
}

/** Every sample of a page by name and labels, as Prometheus would read it. */
async function scrape(metrics: Metrics): Promise<Map<string, number>> {
  const samples = new Map<string, number>();
  for (const line of (await metrics.render()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const end = line.lastIndexOf(' ');
    expect(samples.has(line.slice(0, end)), `${line} twice`).toBe(false);
    samples.set(line.slice(0, end), Number(line.slice(end + 1).replace('+Inf', 'Infinity')));
  }
  return samples;
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
    for (const name of [
      'renewals',
      'renewal_attempts',
      'overdue',
      'deletes',
      'delete_failures',
      'refusals',
    ]) {
      expect(at(`${name}_total`), name).toBe(0);
    }
    expect(at('timer_expiry_timestamp_seconds')).toBe(0);
    expect(at('timer_timeout_seconds')).toBe(60);
    expect(samples.get('killswitch_market_info{market="BTC_USDT",order_types="all",policy="delete"}')).toBe(
      1,
    );
    expect(samples.get(`killswitch_ping_failures_total{base="${BASE}",reason="dns"}`)).toBe(0);
    expect(samples.get('killswitch_log_messages_total{level="error"}')).toBe(0);
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
      renewal_duration_seconds_sum: 0.02,
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
      'bot_alive{bot="maker"}': 0,
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

    const deleted = sampleMarket({ state: 'deleted', wanted: false, expiryWallMs: null });
    metrics.refresh(sampleSnapshot({ ready: false, markets: [deleted] }), now);
    const second = await scrape(metrics);
    expect(second.get('killswitch_market_state{market="BTC_USDT",state="armed"}')).toBe(0);
    expect(second.get('killswitch_market_state{market="BTC_USDT",state="deleted"}')).toBe(1);
    expect(second.get('killswitch_timer_expiry_timestamp_seconds{market="BTC_USDT"}')).toBe(0);
    expect(second.get('killswitch_ready')).toBe(0);
  });

  test('a market that is removed leaves no series behind, whatever is still said about it', async () => {
    metrics = create(['BTC_USDT', 'ETH_USDT']);
    metrics.removeMarket('BTC_USDT');
    metrics.observe(EVERY_NOTICE.deleted, clock.now());
    expect(await metrics.render()).not.toContain('BTC_USDT');
    metrics.addMarket({ market: 'BTC_USDT', types: ['spot', 'margin'], timeoutSeconds: 30 });
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_timer_timeout_seconds{market="BTC_USDT"}')).toBe(30);
    expect(
      samples.get('killswitch_market_info{market="BTC_USDT",order_types="spot+margin",policy="delete"}'),
    ).toBe(1);
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
    // A clock on which every look takes a millisecond, so that the count does not hang on this machine's speed.
    let monoMs = 0;
    let pauses = 0;
    const slow: Clock = {
      now: () => ({ ...clock.now(), monoMs: monoMs++ }),
      after: (delayMs, run) => {
        pauses += 1;
        return clock.after(delayMs, run);
      },
    };
    await create(
      Array.from({ length: 500 }, (_, index) => `M${index}_USDT`),
      slow,
    ).renderChunks();
    expect(pauses).toBeGreaterThan(20);
  });

  test('two scrapes at the same time read the same', async () => {
    const [one, other] = await Promise.all([metrics.render(), metrics.render()]);
    const own = (page: string) => page.split('\n').filter((line) => line.startsWith('killswitch_'));
    expect(own(one)).toEqual(own(other));
  });

  test('log lines and configuration loads are counted', async () => {
    metrics.countLogLine('error');
    metrics.countDroppedLogLine();
    metrics.configLoaded(false, clock.now());
    const samples = await scrape(metrics);
    expect(samples.get('killswitch_log_messages_total{level="error"}')).toBe(1);
    expect(samples.get('killswitch_log_dropped_total')).toBe(1);
    expect(samples.get('killswitch_config_last_reload_successful')).toBe(0);
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
