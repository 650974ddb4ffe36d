import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { HOLDS } from '../../src/core/notice.ts';
import { BOT_STATES, PURPOSES } from '../../src/telemetry/metrics.ts';
import { NOTIFY_WHATS } from '../../src/telemetry/notifications.ts';
import { deployed, RULES } from '../deploy/rules.ts';
import { folderFor } from '../liveness/started.ts';

/** Seconds between two scrapes, and between two evaluations of the rules. */
export const STEP_SECONDS = 5;
/** The scrape at which the trouble of a play begins. */
export const TROUBLE = 60;
/** The moment so many seconds after the trouble began, in seconds from the beginning. */
export const after = (seconds: number): number => TROUBLE * STEP_SECONDS + seconds;

/** What one scrape finds: a number, nothing, or that the series has just ended. */
type Sample = number | '_' | 'stale';
/** A series, by the number of the scrape. */
export type Values = (scrape: number) => Sample;
/** Every series that Prometheus has, by name and labels. */
export type World = ReadonlyMap<string, Values>;
/** What is unusual of a daemon: by the name of a metric, or by name and labels. A number stands for all scrapes. */
export type Changes = Readonly<Record<string, Values | Sample>>;

/** One value until the trouble, another from then on. */
export const turns =
  (before: Sample, then: Sample): Values =>
  (scrape) =>
    scrape < TROUBLE ? before : then;

/** A counter that stands still until the trouble and then counts `perScrape`. */
export const counts =
  (perScrape: number): Values =>
  (scrape) =>
    Math.max(0, scrape - TROUBLE + 1) * perScrape;

/** The labels of one target. */
export interface Target {
  readonly instance: string;
  readonly account?: string;
  readonly pod?: string;
  readonly markets?: readonly string[];
}
export const MAIN: Target = { instance: '10.0.0.1:17477', account: 'main' };
export const OLD: Target = { ...MAIN, pod: 'bot-7d9f-abcde' };
export const NEW: Target = { ...OLD, instance: '10.0.0.2:17477', pod: 'bot-84c5-vwxyz' };
export const OTHER: Target = { instance: '10.0.0.9:17477', account: 'other' };
export const EXPIRY = 'killswitch_timer_expiry_timestamp_seconds';
export const DESIRED = 'killswitch_market_armed_desired';

/** The bot comes into this state with the trouble. */
export const botTurns = (state: string): Changes => ({
  'killswitch_bot_state{bot="maker",state="alive"}': turns(1, 0),
  [`killswitch_bot_state{bot="maker",state="${state}"}`]: turns(0, 1),
});

/** When a timer ends that had so many seconds left at each scrape. */
export const renewed =
  (leftSeconds: number): Values =>
  (scrape) =>
    scrape * STEP_SECONDS + leftSeconds;

const ONE = ['live', 'ready', 'authorised', 'config_last_reload_successful', 'cadence_factor'];
const ZERO = ['log_dropped_total', 'clock_skew_seconds', 'overdue_total', 'altered_replies_total'];

/** One daemon that has nothing to complain of: what the rules look at, and its `up`. */
export function daemon({ markets = ['BTC_USDT'], ...target }: Target, change: Changes = {}): World {
  const world = new Map<string, Values>();
  const labels = Object.entries({ job: 'killswitchd', ...target }).map(
    ([label, value]) => `${label}="${value}"`,
  );
  const add = (name: string, more: string, usual: Values | Sample): void => {
    const values = change[`${name}{${more}}`] ?? change[name] ?? usual;
    const series = `${name}{${[...labels, more].filter((text) => text !== '').join(',')}}`;
    world.set(series, typeof values === 'function' ? values : () => values);
  };
  add('up', '', 1);
  add('process_start_time_seconds', '', 1);
  add('killswitch_build_info', 'version="1.2.3",revision="abc",node_version="v24"', 1);
  for (const name of ONE) add(`killswitch_${name}`, '', 1);
  for (const name of ZERO) add(`killswitch_${name}`, '', 0);
  add('killswitch_survivable_outage_ratio', '', 0.87);
  for (const of of ['shard', 'fleet']) add(`killswitch_${of}_markets`, '', markets.length);
  for (const purpose of PURPOSES) {
    add('killswitch_requests_total', `purpose="${purpose}"`, (scrape) => (purpose === 'renew' ? scrape : 0));
    add('killswitch_request_failures_total', `purpose="${purpose}",reason="timeout"`, 0);
  }
  add('killswitch_api_up', 'base="https://exchange.example"', 1);
  add('killswitch_outage_active', 'base="https://exchange.example"', 0);
  add('killswitch_stalls_total', 'kind="stall"', 0);
  for (const what of NOTIFY_WHATS) add('killswitch_notify_failures_total', `what="${what}"`, 0);
  for (const reason of ['unauthorised', 'malformed_json'])
    add('killswitch_control_refused_total', `reason="${reason}"`, 0);
  for (const state of BOT_STATES)
    add('killswitch_bot_state', `bot="maker",state="${state}"`, state === 'alive' ? 1 : 0);
  for (const le of ['0.5', '0.8', '0.9', '+Inf'])
    add('killswitch_renewal_slack_ratio_bucket', `le="${le}"`, (scrape) => (Number(le) < 0.9 ? 0 : scrape));
  for (const market of markets.map((name) => `market="${name}"`)) {
    add(DESIRED, market, 1);
    // A timer of 60 s that is renewed every 5 s.
    add(EXPIRY, market, renewed(55));
    add('killswitch_timer_timeout_seconds', market, 60);
    add('killswitch_market_state', `state="armed",${market}`, 1);
    add('killswitch_market_state', `state="rejected",${market}`, '_');
    add('killswitch_market_held', `reason="none",${market}`, 0);
    for (const reason of HOLDS) add('killswitch_market_held', `reason="${reason}",${market}`, '_');
    add('killswitch_lapses_total', market, 0);
  }
  return world;
}

const mapped = (world: World, change: (values: Values, name: string) => Values): World =>
  new Map([...world].map(([name, values]) => [name, change(values, name)]));

/** The world from the scrape `from` on, as one that begins there: counters at 0, times going on. */
export function beginning(world: World, from: number): World {
  return mapped(world, (values, name) => {
    const isTime = name.startsWith(EXPIRY);
    return (scrape) => (scrape < from ? '_' : values(isTime ? scrape : scrape - from));
  });
}

/** The world until the scrape `at`, where all of it ends. `down`: for so many scrapes the target does not answer. */
export function ending(world: World, at: number, down = 0): World {
  return mapped(world, (values, name) => (scrape) => {
    if (scrape < at) return values(scrape);
    const end = name.startsWith('up{') ? at + down : at;
    if (scrape < end) return 0;
    return scrape === end ? 'stale' : '_';
  });
}

/** Several targets. Where two worlds have the same series, the later one counts from where it has samples. */
export function together(...worlds: readonly World[]): World {
  const all = new Map<string, Values>();
  for (const [name, values] of worlds.flatMap((world) => [...world])) {
    const before = all.get(name) ?? (() => '_');
    all.set(name, (scrape) => {
      const sample = values(scrape);
      return sample === '_' ? before(scrape) : sample;
    });
  }
  return all;
}

/** The world as one scrape in so many sees it. */
export const seenEvery = (scrapes: number, world: World): World =>
  mapped(world, (values) => (scrape) => (scrape % scrapes === 0 ? values(scrape) : '_'));

/** The series of a market alone. */
export const onlyMarkets = (world: World): World =>
  new Map([...world].filter(([name]) => name.includes('market=')));

/** What an expression must give so many seconds after the beginning of a world: series and their values. */
export interface Expectation {
  readonly at: number;
  readonly query: string;
  readonly samples: readonly { readonly labels: string; readonly value: number }[];
}

/** These alerts, one of each. */
export const alertsNamed = (names: readonly string[]): Expectation['samples'] =>
  names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));

/** What Prometheus says of one world with our rules (`promtool test rules`); nothing where every expectation holds. */
export function judge(world: World, expectations: readonly Expectation[]): string {
  const interval = `${STEP_SECONDS}s`;
  const scrapes = Math.max(...expectations.map(({ at }) => at)) / STEP_SECONDS + 2;
  const numbers = Array.from({ length: scrapes }, (_, scrape) => scrape);
  const play = {
    interval,
    input_series: [...world].map(([series, values]) => ({ series, values: numbers.map(values).join(' ') })),
    promql_expr_test: expectations.map(({ at, query, samples }) => ({
      expr: query,
      eval_time: `${at}s`,
      exp_samples: samples,
    })),
  };
  const rules = { rule_files: [deployed(RULES)], evaluation_interval: interval, tests: [play] };
  // JSON is YAML.
  const file = join(folderFor({ onTestFinished }), 'play.json');
  writeFileSync(file, JSON.stringify(rules));
  try {
    execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe', encoding: 'utf8' });
    return '';
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return `${stdout}${stderr}`;
  }
}
