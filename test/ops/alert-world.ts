import { HOLDS } from '../../src/core/notice.ts';
import { BOT_STATES, PURPOSES } from '../../src/telemetry/families.ts';
import { NOTIFY_WHATS } from '../../src/telemetry/notifications.ts';

/** Seconds between two scrapes, and between two evaluations of the rules. */
export const STEP_SECONDS = 5;
/** The scrape at which the trouble of a play begins. */
export const TROUBLE = 60;

/** What one scrape finds: a number, nothing, or that the series has just ended. */
type Sample = number | '_' | 'stale';
/** A series, by the number of the scrape. */
export type Values = (scrape: number) => Sample;
/** Every series that Prometheus has, by name and labels. */
export type World = ReadonlyMap<string, Values>;

export const flat =
  (value: number): Values =>
  () =>
    value;

/** A series that is not there. */
const never: Values = () => '_';

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

/** The same, once. */
export const countsOnce = turns(0, 1);

/** The labels of one target. */
export interface Target {
  readonly instance: string;
  readonly account?: string;
  readonly pod?: string;
  readonly markets?: readonly string[];
}

const BASE = 'https://exchange.example';
const COUNTERS = ['overdue_total', 'altered_replies_total'];
const SLACK_BUCKETS = ['0.5', '0.8', '0.9', '+Inf'];

const labelled = (name: string, labels: Readonly<Record<string, string | undefined>>): string => {
  const given = Object.entries(labels).filter(([, value]) => value !== undefined);
  return `${name}{${given.map(([label, value]) => `${label}="${value}"`).join(',')}}`;
};

/** The timer of 60 s was renewed within 5 s before each scrape. */
const renewed: Values = (scrape) => scrape * STEP_SECONDS + 55;

/** The last renewal was the one before the trouble. */
export const renewedUntilTrouble: Values = (scrape) => renewed(Math.min(scrape, TROUBLE - 1));

/** One daemon that has nothing to complain of: what the rules look at, and its `up`. `change` replaces by name. */
export function daemon(target: Target, change: Readonly<Record<string, Values>> = {}): World {
  const { markets = ['BTC_USDT'], ...labels } = target;
  const world = new Map<string, Values>();
  const add = (name: string, more: Readonly<Record<string, string>>, values: Values): void => {
    const own = labelled(name, more);
    const changed = change[more['market'] === 'BTC_USDT' || !('market' in more) ? own : ''] ?? change[name];
    world.set(labelled(name, { job: 'killswitchd', ...labels, ...more }), changed ?? values);
  };
  add('up', {}, flat(1));
  add('process_start_time_seconds', {}, flat(1));
  add('killswitch_build_info', { version: '1.2.3', revision: 'abc', node_version: 'v24' }, flat(1));
  for (const name of ['live', 'ready', 'authorised', 'config_last_reload_successful', 'cadence_factor']) {
    add(`killswitch_${name}`, {}, flat(1));
  }
  for (const name of ['log_dropped_total', 'clock_skew_seconds', ...COUNTERS]) {
    add(`killswitch_${name}`, {}, flat(0));
  }
  add('killswitch_survivable_outage_ratio', {}, flat(0.87));
  for (const purpose of PURPOSES) {
    add('killswitch_requests_total', { purpose }, (scrape) => (purpose === 'renew' ? scrape : 0));
    add('killswitch_request_failures_total', { purpose, reason: 'timeout' }, flat(0));
  }
  add('killswitch_api_up', { base: BASE }, flat(1));
  add('killswitch_outage_active', { base: BASE }, flat(0));
  add('killswitch_stalls_total', { kind: 'stall' }, flat(0));
  for (const what of NOTIFY_WHATS) add('killswitch_notify_failures_total', { what }, flat(0));
  for (const reason of ['unauthorised', 'malformed_json']) {
    add('killswitch_control_refused_total', { reason }, flat(0));
  }
  for (const state of BOT_STATES) {
    add('killswitch_bot_state', { bot: 'maker', state }, flat(state === 'alive' ? 1 : 0));
  }
  for (const le of SLACK_BUCKETS) {
    add('killswitch_renewal_slack_ratio_bucket', { le }, (scrape) => (Number(le) < 0.9 ? 0 : scrape));
  }
  for (const market of markets) addMarket((name, more, values) => add(name, { ...more, market }, values));
  return world;
}

function addMarket(
  add: (name: string, more: Readonly<Record<string, string>>, values: Values) => void,
): void {
  add('killswitch_market_armed_desired', {}, flat(1));
  add('killswitch_timer_expiry_timestamp_seconds', {}, renewed);
  add('killswitch_timer_timeout_seconds', {}, flat(60));
  add('killswitch_market_state', { state: 'armed' }, flat(1));
  add('killswitch_market_state', { state: 'rejected' }, never);
  add('killswitch_market_held', { reason: 'none' }, flat(0));
  for (const reason of HOLDS) add('killswitch_market_held', { reason }, never);
  add('killswitch_lapses_total', {}, flat(0));
}

/** The world from the scrape `from` on, as one that begins there: counters at 0, times going on. */
export function beginning(world: World, from: number): World {
  return mapped(world, (values, name) => {
    const isTime = name.startsWith('killswitch_timer_expiry');
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

function mapped(world: World, change: (values: Values, name: string) => Values): World {
  return new Map([...world].map(([name, values]) => [name, change(values, name)]));
}

/** Several targets. Where two worlds have the same series, the later one counts from where it has samples. */
export function together(...worlds: readonly World[]): World {
  const all = new Map<string, Values>();
  for (const world of worlds) {
    for (const [name, values] of world) {
      const before = all.get(name);
      all.set(
        name,
        before === undefined
          ? values
          : (scrape) => {
              const sample = values(scrape);
              return sample === '_' ? before(scrape) : sample;
            },
      );
    }
  }
  return all;
}

/** What `promtool test rules` reads. */
export function inputSeries(world: World, scrapes: number): { series: string; values: string }[] {
  const numbers = Array.from({ length: scrapes }, (_, scrape) => scrape);
  return [...world].map(([series, values]) => ({ series, values: numbers.map(values).join(' ') }));
}
