import { describe, expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { DASHBOARDS, expressionOf, expressionsOf, filledIn, readDashboard } from '../deploy/dashboards.ts';
import { scrape } from '../telemetry/scrape.ts';
import { botTurns, DESIRED, EXPIRY, MAIN, NEW, OLD, OTHER } from './alert-stage.ts';
import {
  beginning,
  counts,
  daemon,
  ending,
  flat,
  STEP_SECONDS,
  TROUBLE,
  together,
  turns,
  type World,
} from './alert-world.ts';
import { judge } from './promtool.ts';

const [BOT, FLEET] = DASHBOARDS;

/** "All", as hard as it gets: other programs in the same Prometheus, some of them in the daemons' own job. */
const ALL = new Map(['job', 'instance', 'market', 'bot'].map((name) => [name, '.+'])).set('account', '.*');
const FOREIGN: World = new Map([
  ['up{job="node",instance="10.0.0.7:9100"}', flat(0)],
  ['up{job="killswitchd",instance="10.0.0.8:9100"}', flat(0)],
  ['process_resident_memory_bytes{job="node",instance="10.0.0.7:9100"}', flat(1e9)],
]);

/** What is wrong with the number that each panel shows so long after the trouble began. */
function shows(
  world: World,
  seconds: number,
  panels: Readonly<Record<string, readonly [string, number | null]>>,
) {
  const expectations = Object.entries(panels).map(([title, [dashboard, value]]) => ({
    at: TROUBLE * STEP_SECONDS + seconds,
    query: filledIn(expressionOf(dashboard, title), ALL, '60s'),
    samples: value === null ? [] : [{ labels: '{}', value }],
  }));
  const scrapes = TROUBLE + seconds / STEP_SECONDS + 2;
  return judge(together(world, FOREIGN), scrapes, expectations);
}

const ARMED = 'Is every market protected?';
const LEFT = 'Orders are cancelled in';
const NEXT = 'Next orders are cancelled in';
const SILENT = 'Daemons that do not answer';

describe('a dashboard with everything chosen', () => {
  test('counts no target of another program, and no process', () => {
    expect(
      shows(together(daemon(MAIN), daemon(OTHER)), 100, {
        [ARMED]: [BOT, 1],
        [LEFT]: [BOT, 55],
        'Least slack': [BOT, 55 / 60],
        [SILENT]: [FLEET, 0],
        'Markets not armed': [FLEET, 0],
        [NEXT]: [FLEET, 55],
        Memory: [BOT, null],
      }),
    ).toBe('');
  });

  test('counts a daemon that is dead', () => {
    expect(
      shows(together(ending(daemon(MAIN), TROUBLE, 1e6), daemon(OTHER)), 100, {
        [ARMED]: [BOT, -1],
        [LEFT]: [BOT, -50],
        [SILENT]: [FLEET, 1],
        'Markets not armed': [FLEET, 1],
      }),
    ).toBe('');
  });

  test('shows the least slack of the others where a market was never armed', () => {
    const world = daemon(
      { ...MAIN, markets: ['ETH_USDT', 'BTC_USDT'] },
      { [`${EXPIRY}{market="BTC_USDT"}`]: flat(0) },
    );
    expect(
      shows(world, 100, { [LEFT]: [BOT, 55], [NEXT]: [FLEET, 55], 'Markets not armed': [FLEET, 1] }),
    ).toBe('');
    const alone = daemon(MAIN, { [EXPIRY]: flat(0) });
    expect(
      shows(alone, 100, { [LEFT]: [BOT, null], [NEXT]: [FLEET, null], 'Markets not armed': [FLEET, 1] }),
    ).toBe('');
  });

  test('shows the timers of the new daemon after a rollout', () => {
    const world = together(ending(daemon(OLD), TROUBLE), beginning(daemon(NEW), TROUBLE + 2));
    for (const seconds of [60, 100, 500])
      expect(
        shows(world, seconds, {
          [ARMED]: [BOT, 1],
          [LEFT]: [BOT, 55],
          [NEXT]: [FLEET, 55],
          'Markets not armed': [FLEET, 0],
        }),
      ).toBe('');
    const worst = filledIn(expressionOf(FLEET, 'Daemons, worst first'), ALL);
    const query = `count(${worst} < 0) or vector(0)`;
    expect(judge(world, TROUBLE + 40, [{ at: 400, query, samples: [{ labels: '{}', value: 0 }] }])).toBe('');
  });

  test('forgets a market that a reload took out', () => {
    const gone = [...daemon({ ...MAIN, markets: ['ETH_USDT'] })].filter(([name]) => name.includes('market='));
    expect(
      shows(together(daemon(MAIN), ending(new Map(gone), TROUBLE)), 100, {
        [LEFT]: [BOT, 55],
        'Markets not armed': [FLEET, 0],
      }),
    ).toBe('');
  });

  test('says so where a dead bot leaves nothing to arm', () => {
    expect(
      shows(
        daemon(MAIN, { ...botTurns('stale'), [DESIRED]: turns(1, 0), killswitch_ready: turns(1, 0) }),
        100,
        {
          [ARMED]: [BOT, 2],
          [LEFT]: [BOT, null],
        },
      ),
    ).toBe('');
  });
});

test('beats that are 1.0 s apart are shown as about 1.0 s apart', async () => {
  let monoMs = 0;
  const clock = createSystemClock();
  const metrics = createMetrics({
    version: '1',
    revision: 'x',
    nodeVersion: 'v',
    bases: [],
    bots: ['main'],
    shard: { index: 0, count: 1, markets: 1, fleet: 1 },
    clock: { ...clock, now: () => ({ ...clock.now(), monoMs }) },
  });
  for (let beat = 0; beat < 101; beat += 1) {
    metrics.beatHeard('main');
    monoMs += 1000 + (beat % 5);
  }
  const world = new Map(daemon(MAIN));
  for (const [name, count] of await scrape(metrics)) {
    const le = /^killswitch_bot_beat_gap_seconds_bucket\{le="([^"]+)"\}$/.exec(name)?.[1];
    if (le !== undefined)
      world.set(
        `killswitch_bot_beat_gap_seconds_bucket{job="killswitchd",instance="${MAIN.instance}",le="${le}"}`,
        counts(count / 20),
      );
  }
  const { panels } = readDashboard(BOT);
  const [, p99] = panels.find(({ title }) => title === 'Gap between two beats')?.targets ?? [];
  const query = filledIn(p99?.expr ?? '', ALL, '60s');
  const near = `(${query} > bool 0.9) * (${query} < bool 1.11)`;
  expect(
    judge(world, TROUBLE + 42, [
      { at: TROUBLE * STEP_SECONDS + 200, query: near, samples: [{ labels: '{}', value: 1 }] },
    ]),
  ).toBe('');
});

test.each(DASHBOARDS)(
  '%s lists the alerts of what is chosen, and those that are about no instance',
  (path) => {
    const alert = (alertname: string, more: Readonly<Record<string, string>>) => {
      const labels = { alertstate: 'firing', alertname, job: 'killswitchd', severity: 'critical', ...more };
      return `ALERTS{${Object.entries(labels)
        .map(([name, value]) => `${name}="${value}"`)
        .join(',')}}`;
    };
    const world = new Map(
      [
        alert('KillswitchDown', { instance: 'a' }),
        alert('KillswitchKeyRefused', { instance: 'b' }),
        alert('KillswitchUnarmed', { market: 'BTC_USDT', account: 'main' }),
        alert('KillswitchGone', { job: 'killswitchd-test' }),
        alert('KillswitchWatchdog', { severity: 'info' }),
      ].map((series) => [series, flat(1)]),
    );
    const expr =
      expressionsOf(readDashboard(path)).find(({ where }) => where === 'Firing alerts A')?.expr ?? '';
    const chosen = new Map([...ALL, ['job', 'killswitchd'], ['instance', 'a']]);
    const query = `count by (alertname) (${filledIn(expr, chosen)})`;
    // Our rules have no others to add: no target is there that they know, but for the two that always fire then.
    const samples = ['KillswitchDown', 'KillswitchUnarmed'].map((name) => ({
      labels: `{alertname="${name}"}`,
      value: 1,
    }));
    expect(judge(world, 4, [{ at: 10, query, samples }])).toBe('');
  },
);
