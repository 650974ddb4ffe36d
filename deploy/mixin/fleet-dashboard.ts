import type { MixinConfig } from './config.ts';
import {
  bars,
  dashboard,
  filled,
  fixed,
  graph,
  mappings,
  override,
  type Panel,
  row,
  stat,
  stepped,
  table,
  warned,
} from './panels.ts';
import {
  ALARM,
  ARMED,
  annotations,
  armedNumber,
  clocks,
  failuresByReason,
  firingAlerts,
  increase,
  LEFT,
  links,
  MEMORY,
  memory,
  NONE,
  type Queries,
  queriesOf,
  RATE,
  rate,
  SHARE,
  STATES,
  standstills,
} from './queries.ts';

/** All daemons, the worst first. */
export function fleetDashboard(config: MixinConfig) {
  const q = queriesOf(config, 'job=~"$job", instance=~"$instance", account=~"$account"');
  return dashboard({
    uid: 'killswitchd-fleet',
    title: 'killswitchd: the fleet',
    description: 'All daemons at a glance, the worst first.',
    variables: [
      { name: 'job', selector: 'killswitch_build_info' },
      { name: 'account', selector: 'killswitch_build_info{job=~"$job"}', all: '.*' },
      { name: 'instance', selector: 'killswitch_build_info{job=~"$job", account=~"$account"}', all: '.+' },
    ],
    links: links(config, 'One bot', 'killswitchd-bot', 'One bot in detail'),
    annotations: annotations(q, ''),
    panels: [
      ...fleetFirstRow(q),
      fleetTable(q),
      firingAlerts(config, [15, 5, 9, 9], ['instance', 'account']),
      ...fleetTimers(q),
      ...fleetCauses(q),
      ...fleetEvents(q),
    ],
  });
}

function fleetFirstRow({ s, up, wanted, wantedOrNever }: Queries): Panel[] {
  const counts: readonly (readonly [title: string, description: string, expr: string])[] = [
    [
      'Daemons that do not answer',
      'Targets of killswitchd that Prometheus cannot scrape.',
      `count(${up} == 0)`,
    ],
    [
      'Bots that are silent',
      'Bots that are stale or have failed: their timers are left to fire.',
      `sum(${s('killswitch_bot_state', 'state=~"stale|failed"')})`,
    ],
    [
      'Addresses in outage',
      'Base addresses, seen from each daemon, to which no renewal gets through.',
      `sum(${s('killswitch_outage_active')})`,
    ],
    [
      'Keys refused',
      'Daemons whose key the exchange refuses: every timer of theirs will fire.',
      `count(${s('killswitch_authorised')} == 0)`,
    ],
  ];
  return [
    stat({
      title: 'Markets not armed',
      description:
        'Markets that should be guarded and whose time is up, or that were never armed. Includes those of daemons that ' +
        'have died.',
      at: [0, 0, 4, 5],
      unit: 'none',
      expr: `count((${wantedOrNever}) < time()) or vector(0)`,
      steps: ALARM,
    }),
    stat({
      title: 'Next orders are cancelled in',
      description:
        'The least slack of any timer that should be armed, if nothing more is renewed. Markets that were never armed ' +
        'have no slack.',
      at: [4, 0, 4, 5],
      unit: 's',
      expr: `min(${wanted}) - time()`,
      steps: LEFT,
      none: NONE,
      decimals: 0,
    }),
    ...counts.map(([title, description, expr], index) =>
      stat({
        title,
        description,
        at: [8 + 4 * index, 0, 4, 5],
        unit: 'none',
        expr: `${expr} or vector(0)`,
        steps: ALARM,
      }),
    ),
  ];
}

/** Slack as a share of the timeout, with the labels of the daemon. */
const slackShare = ({ s, slack }: Queries) =>
  `${slack} / last_over_time(${s('killswitch_timer_timeout_seconds')}[${MEMORY}])`;

function fleetTable(q: Queries): Panel {
  const { s } = q;
  const by = ' by (job, instance, account)';
  const renew = 'purpose="renew"';
  return table({
    title: 'Daemons, worst first',
    description: 'One line per daemon, the one with the least slack on top. The name leads to its dashboard.',
    at: [0, 5, 15, 9],
    unit: 'none',
    none: '-',
    queries: [
      `min${by} (${slackShare(q)})`,
      armedNumber(q, by),
      `sum${by} (${s('killswitch_market_armed_desired')})`,
      `sum${by} (${s('killswitch_bot_state', 'state=~"stale|failed"')})`,
      `sum${by} (${s('killswitch_market_held')})`,
      `sum${by} (${rate(s('killswitch_request_failures_total', renew))}) / ` +
        `sum${by} (${rate(s('killswitch_requests_total', renew))})`,
    ],
    labels: ['instance', 'account', 'job'],
    joinBy: 'merge',
    sortBy: 'least slack',
    columns: [
      { name: 'least slack', shows: { unit: 'percentunit', decimals: 0, ...stepped(SHARE), ...filled } },
      { name: 'protected', shows: { mappings: mappings(ARMED), ...filled } },
      { name: 'wanted' },
      { name: 'silent bots', shows: { ...warned('red', 1), ...filled } },
      { name: 'held', shows: { ...warned('blue', 1), ...filled } },
      { name: 'failing', shows: { unit: 'percentunit', decimals: 0, ...warned('orange', 0.2), ...filled } },
    ],
    overrides: [
      override('byName', 'instance', {
        links: [
          {
            title: 'This daemon',
            url:
              '/d/killswitchd-bot?var-job=$' +
              '{__data.fields.job}&var-instance=$' +
              '{__data.fields.instance}&$' +
              '{__url_time_range}',
            targetBlank: false,
          },
        ],
      }),
    ],
  });
}

const EACH = '{{account}} {{instance}}';

function fleetTimers(q: Queries): Panel[] {
  const { s } = q;
  return [
    graph({
      title: 'Least slack',
      description:
        'Of each daemon, over its markets that should be armed, as a share of the timeout. The line that falls is the ' +
        'one to look at.',
      at: [0, 14, 12, 9],
      unit: 'percentunit',
      legend: ['lastNotNull', 'min'],
      max: 1,
      redBelow: 0.5,
      queries: [{ expr: `min by (instance, account) (${slackShare(q)})`, legend: EACH }],
      min: null,
    }),
    graph({
      title: 'Markets by state',
      description:
        'armed in good times. suspended: the bot is silent or has said goodbye. expired: the time was up.',
      at: [12, 14, 12, 9],
      unit: 'none',
      as: 'stack',
      legend: ['lastNotNull'],
      queries: [{ expr: `sum by (state) (${s('killswitch_market_state')}) > 0`, legend: '{{state}}' }],
      overrides: STATES.map(([, name, color]) => override('byName', name, fixed(color))),
    }),
    bars({
      title: 'The ten markets with the least slack',
      description: 'As a share of their timeouts.',
      at: [0, 23, 12, 8],
      unit: 'percentunit',
      expr: `bottomk(10, ${slackShare(q)})`,
      legend: '{{market}} {{account}} {{instance}}',
      steps: [
        ['dark-red', null],
        ['red', 0.001],
        ['orange', 0.3],
        ['green', 0.5],
      ],
      none: NONE,
    }),
    graph({
      title: 'Age of the evidence',
      description: 'Of each bot. Bots that nobody watches (liveness mode none) have none.',
      at: [12, 23, 12, 8],
      unit: 's',
      queries: [
        {
          expr: `time() - (${s('killswitch_bot_last_evidence_timestamp_seconds')} > 0)`,
          legend: '{{bot}} {{account}} {{instance}}',
        },
      ],
    }),
  ];
}

function fleetCauses({ s, quantile }: Queries): Panel[] {
  const renew = 'purpose="renew"';
  const each = 'le, instance, account';
  return [
    row('Causes', 31),
    failuresByReason(s, [0, 32, 8, 8]),
    graph({
      title: 'Share of renewals that fail',
      description: 'Of each daemon. One alone: its host, key or way. All together: the exchange.',
      at: [8, 32, 8, 8],
      unit: 'percentunit',
      max: 1,
      queries: [
        {
          expr:
            `sum by (instance, account) (${rate(s('killswitch_request_failures_total', renew))}) / ` +
            `sum by (instance, account) (${rate(s('killswitch_requests_total', renew))})`,
          legend: EACH,
        },
      ],
    }),
    graph({
      title: 'Time of a request',
      description: '99 % of the confirmed renewals of each daemon took less.',
      at: [16, 32, 8, 8],
      unit: 's',
      queries: [{ expr: quantile(0.99, 'killswitch_renewal_duration_seconds', each), legend: EACH }],
    }),
    graph({
      title: 'Slack of all renewals',
      description: 'One renewal in twenty, and one in two, was confirmed with less of its timeout left.',
      at: [0, 40, 8, 8],
      unit: 'percentunit',
      legend: ['lastNotNull', 'min'],
      max: 1,
      redBelow: 0.5,
      queries: [
        { expr: quantile(0.05, 'killswitch_renewal_slack_ratio'), legend: '5 %' },
        { expr: quantile(0.5, 'killswitch_renewal_slack_ratio'), legend: 'median' },
      ],
    }),
    graph({
      title: 'Delay of attempts',
      description: '99 % of the attempts of each daemon were written sooner after they were due.',
      at: [8, 40, 8, 8],
      unit: 's',
      queries: [{ expr: quantile(0.99, 'killswitch_schedule_delay_seconds', each), legend: EACH }],
    }),
    graph({
      title: 'Renewals and room',
      description: 'Renewals per second, and how many the rate limit and the connection can carry.',
      at: [16, 40, 8, 8],
      unit: 'reqps',
      queries: [
        { expr: `sum(${rate(s('killswitch_renewals_total'))})`, legend: 'renewals' },
        { expr: `sum(${s('killswitch_capacity_requests_per_second')})`, legend: 'room' },
      ],
    }),
  ];
}

function fleetEvents(q: Queries): Panel[] {
  const { s, own } = q;
  const bar = { unit: 'short', as: 'bars', legend: ['sum'] } as const;
  return [
    row('What happened', 48),
    graph({
      title: 'Lapses',
      description: 'Timers that fired although they should not have, by how sure that is.',
      at: [0, 49, 6, 8],
      ...bar,
      queries: [
        {
          expr: `sum by (account, certainty) (${increase(s('killswitch_lapses_by_certainty_total'))})`,
          legend: '{{account}} {{certainty}}',
        },
      ],
    }),
    graph({
      title: 'Suspensions and trips',
      description:
        'Bots that fell silent, failed or said goodbye, by market; and timers that were cut short.',
      at: [6, 49, 6, 8],
      ...bar,
      queries: [
        { expr: `sum by (reason) (${increase(s('killswitch_suspensions_total'))})`, legend: '{{reason}}' },
        { expr: `sum(${increase(s('killswitch_trips_total'))})`, legend: 'tripped' },
      ],
    }),
    graph({
      title: 'Starts and reloads',
      description: 'Starts of each process, and reloads that were rejected.',
      at: [12, 49, 6, 8],
      ...bar,
      queries: [
        { expr: own(`changes(${s('process_start_time_seconds')}[${RATE}])`), legend: `${EACH}: starts` },
        { expr: increase(s('killswitch_config_reload_failures_total')), legend: `${EACH}: rejected` },
      ],
    }),
    standstills(s, [18, 49, 6, 8]),
    graph({
      title: 'Versions',
      description: 'Daemons by the version that they run.',
      at: [0, 57, 8, 8],
      unit: 'none',
      as: 'stack',
      legend: ['lastNotNull'],
      queries: [{ expr: `count by (version) (${s('killswitch_build_info')})`, legend: '{{version}}' }],
    }),
    memory(q, [8, 57, 8, 8], EACH),
    clocks(q, [16, 57, 8, 8], EACH),
  ];
}
