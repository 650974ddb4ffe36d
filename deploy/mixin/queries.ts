import type { MixinConfig } from './config.ts';
import {
  annotation,
  filled,
  graph,
  link,
  mappings,
  type Names,
  override,
  type Panel,
  type Query,
  type Steps,
  table,
} from './panels.ts';
import { WATCHDOG } from './rules.ts';

export const STATES: Names = [
  [1, 'armed', 'green'],
  [2, 'retrying', 'orange'],
  [3, 'arming', 'yellow'],
  [4, 'suspended', 'purple'],
  [5, 'paused', 'blue'],
  [6, 'disarmed', 'blue'],
  [7, 'deleted', 'text'],
  [8, 'rejected', 'red'],
  [9, 'expired', 'dark-red'],
];
export const LEFT: Steps = [
  ['dark-red', null],
  ['orange', 0],
  ['green', 3],
];
export const SHARE: Steps = [
  ['dark-red', null],
  ['red', 0],
  ['orange', 0.3],
  ['green', 0.5],
];
export const ALARM: Steps = [
  ['green', null],
  ['red', 1],
];
export const NONE = 'nothing is guarded';
export const RATE = '$__rate_interval';
/** A daemon that was replaced is gone from these after so long, and one that died after the hour of the rules. */
export const MEMORY = '10m';

/** Expressions about the targets that a dashboard's variables choose. */
export interface Queries {
  /** A metric of the chosen daemons, with further matchers. */
  readonly s: (metric: string, more?: string) => string;
  /** `up` of the chosen daemons alone: the same job may scrape other things. */
  readonly up: string;
  /** A metric that every process has, of the chosen daemons alone. */
  readonly own: (expr: string) => string;
  /** When the timer of each wanted market ends, with what a daemon that is gone or dead said last. */
  readonly wanted: string;
  /** When each timer ends that stands, wanted or not: a dead bot's is wanted no more, and its orders are cancelled. */
  readonly standing: string;
  /** Of the wanted ones, with 0 for those that were never armed. */
  readonly wantedOrNever: string;
  /** Slack of each wanted market in seconds, of the daemon that renewed it last, with that daemon's labels. */
  readonly slack: string;
  readonly quantile: (q: number, metric: string, by?: string) => string;
}

/** `market` narrows what is about markets. */
export function queriesOf({ volatileLabels }: MixinConfig, chosen: string, market = ''): Queries {
  const s = (metric: string, more = '') =>
    `${metric}{${[chosen, more].filter((text) => text !== '').join(', ')}}`;
  const own = (expr: string) =>
    `(${expr} and on (job, instance) last_over_time(${s('killswitch_build_info')}[6h]))`;
  const expiry = s('killswitch_timer_expiry_timestamp_seconds', market);
  const desired = s('killswitch_market_armed_desired', market);
  const each = (armed: string, wanted = ` and (${desired} == 1)`) =>
    `((${expiry}${armed})${wanted}) or ` +
    `((last_over_time(${expiry}[${MEMORY}])${armed}) and (last_over_time(${desired}[${MEMORY}]) == 1) ` +
    `unless on (job, instance) (${s('up')} == 1))`;
  const without = `without (${volatileLabels.join(', ')})`;
  const group = 'job, account, cluster, namespace, market';
  const latest = `((${each(' > 0')}) == on (${group}) group_left () max by (${group}) (${each(' > 0')}))`;
  return {
    s,
    own,
    up: own(s('up')),
    wanted: `max ${without} (${each(' > 0')})`,
    standing: `max ${without} (${each(' > 0', '')})`,
    wantedOrNever: `max ${without} (${each('')})`,
    slack: `(${latest} - time())`,
    quantile: (q, metric, by = 'le') =>
      `histogram_quantile(${q}, sum by (${by}) (rate(${s(`${metric}_bucket`)}[${RATE}])))`,
  };
}

export const rate = (selector: string) => `rate(${selector}[${RATE}])`;
export const increase = (selector: string) => `increase(${selector}[${RATE}])`;

/** 1 to 9 by the state of each market, as `STATES` names them. */
export const stateNumber = (s: Queries['s'], market: string): string =>
  `max by (market) (${STATES.map(
    ([value, name]) => `${value} * (${s('killswitch_market_state', `${market}, state="${name}"`)} == 1)`,
  ).join(' or ')})`;

/** 1 ready, 2 nothing should be armed and no bot is dead, 0 not ready, -1 a daemon does not answer. `by` groups all of them. */
export const armedNumber = ({ s, up }: Queries, by = ''): string => {
  const over = (how: string, expr: string) => `${how}${by} (${expr})`;
  const dead = `${s('killswitch_bot_state', 'state=~"stale|failed"')} == 1`;
  const idle = `${over('sum', `${s('killswitch_market_armed_desired')} or ${dead}`)} == bool 0`;
  const ready = `${over('min', s('killswitch_ready'))} * (1 - (${idle})) + 2 * (${idle})`;
  return `((${ready}) unless ${over('min', up)} == 0) or (${over('min', up)} - 1)`;
};
export const ARMED: Names = [
  [-1, 'DOWN', 'dark-red'],
  [0, 'NOT PROTECTED', 'red'],
  [1, 'PROTECTED', 'green'],
  [2, 'NOTHING IS GUARDED', 'orange'],
];
export const ARMED_STEPS: Steps = [
  ['red', null],
  ['green', 1],
  ['orange', 2],
];

export function links({ runbookUrl }: MixinConfig, title: string, uid: string, tooltip: string) {
  return [
    link('Runbooks', runbookUrl, 'What each alert means, and what to do'),
    link(title, `/d/${uid}`, tooltip),
  ];
}

export function annotations({ s, own }: Queries, market: string) {
  const lapses = increase(s('killswitch_lapses_total', market));
  return [
    annotation('Lapses', 'red', `sum by (market) (${lapses}) > 0`, '{{market}} lapsed'),
    annotation(
      'Starts',
      'blue',
      `changes(${s('process_start_time_seconds')}[${RATE}]) > 0 and on (job, instance) ${own(s('up'))}`,
      '{{instance}} started',
    ),
  ];
}

/** Labels that an alert may lack are matched with what is chosen, or with nothing. */
export function firingAlerts({ runbookUrl, severities }: MixinConfig, labels: readonly string[]): Panel {
  const chosen = ['job', ...labels].map((label) => `${label}=~"$${label}|"`).join(', ');
  const severity: Names = [
    [severities.critical, severities.critical, 'red'],
    [severities.warning, severities.warning, 'orange'],
    [severities.info, severities.info, 'blue'],
  ];
  const runbooks = [{ title: 'Runbooks', url: runbookUrl, targetBlank: true }];
  const alerts = `ALERTS{alertname=~"Killswitch.+", alertname!="${WATCHDOG}", alertstate="firing", ${chosen}}`;
  return {
    ...table({
      title: 'Firing alerts',
      description:
        'What Prometheus has found wrong with what is chosen above, by the rules of deploy/prometheus. Each has a ' +
        'section in the runbooks.',
      queries: [`max by (alertname, severity, market, bot, instance, account) (${alerts})`],
      labels: ['severity', 'alertname', 'market', 'bot', 'account', 'instance'],
      columns: [null],
      joinBy: 'merge',
      none: 'no alert is firing',
      overrides: [
        override('byName', 'severity', { mappings: mappings(severity), ...filled }),
        override('byName', 'alertname', { links: runbooks }),
      ],
    }),
    links: runbooks,
  };
}

export const medianAnd99 = (quantile: Queries['quantile'], metric: string): Query[] => [
  [quantile(0.5, metric), 'median'],
  [quantile(0.99, metric), '99 %'],
];

export function failuresByReason(s: Queries['s']): Panel {
  return graph({
    title: 'Failures by reason',
    description:
      'Requests about timers that failed, per second. timeout, network, dns, tls: the way. http_5xx, rate_limited: ' +
      'the exchange. auth, nonce: the key.',
    unit: 'reqps',
    as: 'stack',
    queries: [[`sum by (reason) (${rate(s('killswitch_request_failures_total'))}) > 0`, '{{reason}}']],
  });
}

/** Of the daemons alone, whatever else is scraped. */
export function memory({ s, own }: Queries, legend: string): Panel {
  return graph({
    title: 'Memory',
    description: 'Resident memory of each process.',
    unit: 'bytes',
    legend: ['lastNotNull'],
    queries: [[own(s('process_resident_memory_bytes')), legend]],
  });
}

export function clocks({ s }: Queries, legend: string): Panel {
  return graph({
    title: 'Clock against the exchange',
    description: "The exchange's clock minus that of each host, in whole seconds of the exchange.",
    unit: 's',
    legend: ['lastNotNull'],
    queries: [[s('killswitch_clock_skew_seconds'), legend]],
    min: null,
  });
}

export function standstills(s: Queries['s']): Panel {
  return graph({
    title: 'Standstills',
    description:
      'stall: the process stood still. suspend: the host slept. clock_step: somebody set the clock.',
    unit: 'short',
    as: 'bars',
    legend: ['sum'],
    queries: [[`sum by (kind) (${increase(s('killswitch_stalls_total'))})`, '{{kind}}']],
  });
}
