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
  const [timers, causes, events] = [fleetTimers(q), fleetCauses(q), fleetEvents(q)];
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
    rows: [
      { height: 5, panels: fleetFirstRow(q) },
      { height: 9, widths: [15, 9], panels: [fleetTable(q), firingAlerts(config, ['instance', 'account'])] },
      { height: 9, panels: timers.slice(0, 2) },
      { height: 8, panels: timers.slice(2) },
      { title: 'Causes', height: 8, panels: causes.slice(0, 3) },
      { height: 8, panels: causes.slice(3) },
      { title: 'What happened', height: 8, panels: events.slice(0, 4) },
      { height: 8, panels: events.slice(4) },
    ],
  });
}

function fleetFirstRow({ s, up, standing, wantedOrNever }: Queries): Panel[] {
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
      expr: `count((${wantedOrNever}) < time()) or vector(0)`,
      steps: ALARM,
    }),
    stat({
      title: 'Next orders are cancelled in',
      description:
        'The least time that any timer has left, if nothing more is renewed, also one of a dead bot. Markets that ' +
        'were never armed have none.',
      unit: 's',
      expr: `min(${standing}) - time()`,
      steps: LEFT,
      none: NONE,
      decimals: 0,
    }),
    ...counts.map(([title, description, expr]) =>
      stat({
        title,
        description,
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
      unit: 'percentunit',
      legend: ['lastNotNull', 'min'],
      max: 1,
      redBelow: 0.5,
      queries: [[`min by (instance, account) (${slackShare(q)})`, EACH]],
      min: null,
    }),
    graph({
      title: 'Markets by state',
      description:
        'armed in good times. suspended: the bot is silent or has said goodbye. expired: the time was up.',
      as: 'stack',
      legend: ['lastNotNull'],
      queries: [[`sum by (state) (${s('killswitch_market_state')}) > 0`, '{{state}}']],
      overrides: STATES.map(([, name, color]) => override('byName', name, fixed(color))),
    }),
    bars({
      title: 'The ten markets with the least slack',
      description: 'As a share of their timeouts.',
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
      unit: 's',
      queries: [
        [
          `time() - (${s('killswitch_bot_last_evidence_timestamp_seconds')} > 0)`,
          '{{bot}} {{account}} {{instance}}',
        ],
      ],
    }),
  ];
}

function fleetCauses({ s, quantile }: Queries): Panel[] {
  const renew = 'purpose="renew"';
  const each = 'le, instance, account';
  return [
    failuresByReason(s),
    graph({
      title: 'Share of renewals that fail',
      description: 'Of each daemon. One alone: its host, key or way. All together: the exchange.',
      unit: 'percentunit',
      max: 1,
      queries: [
        [
          `sum by (instance, account) (${rate(s('killswitch_request_failures_total', renew))}) / ` +
            `sum by (instance, account) (${rate(s('killswitch_requests_total', renew))})`,
          EACH,
        ],
      ],
    }),
    graph({
      title: 'Time of a request',
      description: '99 % of the confirmed renewals of each daemon took less.',
      unit: 's',
      queries: [[quantile(0.99, 'killswitch_renewal_duration_seconds', each), EACH]],
    }),
    graph({
      title: 'Slack of all renewals',
      description: 'One renewal in twenty, and one in two, was confirmed with less of its timeout left.',
      unit: 'percentunit',
      legend: ['lastNotNull', 'min'],
      max: 1,
      redBelow: 0.5,
      queries: [
        [quantile(0.05, 'killswitch_renewal_slack_ratio'), '5 %'],
        [quantile(0.5, 'killswitch_renewal_slack_ratio'), 'median'],
      ],
    }),
    graph({
      title: 'Delay of attempts',
      description: '99 % of the attempts of each daemon were written sooner after they were due.',
      unit: 's',
      queries: [[quantile(0.99, 'killswitch_schedule_delay_seconds', each), EACH]],
    }),
    graph({
      title: 'Renewals and room',
      description: 'Renewals per second, and how many the rate limit and the connection can carry.',
      unit: 'reqps',
      queries: [
        [`sum(${rate(s('killswitch_renewals_total'))})`, 'renewals'],
        [`sum(${s('killswitch_capacity_requests_per_second')})`, 'room'],
      ],
    }),
  ];
}

function fleetEvents(q: Queries): Panel[] {
  const { s, own } = q;
  const bar = { unit: 'short', as: 'bars', legend: ['sum'] } as const;
  return [
    graph({
      title: 'Lapses',
      description: 'Timers that fired although they should not have, by how sure that is.',
      ...bar,
      queries: [
        [
          `sum by (account, certainty) (${increase(s('killswitch_lapses_by_certainty_total'))})`,
          '{{account}} {{certainty}}',
        ],
      ],
    }),
    graph({
      title: 'Suspensions and trips',
      description:
        'Bots that fell silent, failed or said goodbye, by market; and timers that were cut short.',
      ...bar,
      queries: [
        [`sum by (reason) (${increase(s('killswitch_suspensions_total'))})`, '{{reason}}'],
        [`sum(${increase(s('killswitch_trips_total'))})`, 'tripped'],
      ],
    }),
    graph({
      title: 'Starts and reloads',
      description: 'Starts of each process, and reloads that were rejected.',
      ...bar,
      queries: [
        [own(`changes(${s('process_start_time_seconds')}[${RATE}])`), `${EACH}: starts`],
        [increase(s('killswitch_config_reload_failures_total')), `${EACH}: rejected`],
      ],
    }),
    standstills(s),
    graph({
      title: 'Versions',
      description: 'Daemons by the version that they run.',
      as: 'stack',
      legend: ['lastNotNull'],
      queries: [[`count by (version) (${s('killswitch_build_info')})`, '{{version}}']],
    }),
    memory(q, EACH),
    clocks(q, EACH),
  ];
}
