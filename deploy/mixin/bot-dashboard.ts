import type { MixinConfig } from './config.ts';
import {
  coloured,
  dashboard,
  filled,
  fixed,
  graph,
  mappings,
  override,
  type Panel,
  type Query,
  type Row,
  stat,
  stepped,
  table,
  timeline,
  warned,
} from './panels.ts';
import {
  ARMED,
  ARMED_STEPS,
  annotations,
  armedNumber,
  clocks,
  failuresByReason,
  firingAlerts,
  increase,
  LEFT,
  links,
  MEMORY,
  medianAnd99,
  memory,
  NONE,
  type Queries,
  queriesOf,
  rate,
  SHARE,
  STATES,
  standstills,
  stateNumber,
} from './queries.ts';

/** One bot: is every timer armed, how long until orders are cancelled, and why. */
export function botDashboard(config: MixinConfig) {
  const market = 'market=~"$market"';
  const q = queriesOf(config, 'job=~"$job", instance=~"$instance"', market);
  return dashboard({
    uid: 'killswitchd-bot',
    title: 'killswitchd: one bot',
    description:
      'The kill-switch timers of one bot: is every one armed, how long until orders are cancelled, and why. Most ' +
      'urgent first.',
    variables: [
      { name: 'job', selector: 'killswitch_build_info' },
      { name: 'instance', selector: 'killswitch_build_info{job=~"$job"}', all: '.+' },
      { name: 'bot', selector: q.s('killswitch_bot_info') },
      { name: 'market', selector: q.s('killswitch_market_info', 'bot=~"$bot"') },
    ],
    links: links(config, 'Fleet', 'killswitchd-fleet', 'All daemons'),
    annotations: annotations(q, market),
    rows: [
      { height: 5, panels: botFirstRow(q) },
      ...botTimers(config, q, market),
      { title: 'The bot', height: 8, panels: botItself(q) },
      ...botWay(q, market),
      { title: 'What happened', height: 8, widths: [12, 6, 6], panels: botEvents(q, market) },
      ...botHost(q),
    ],
  });
}

function botFirstRow(q: Queries): Panel[] {
  const { s } = q;
  const bot = 'bot=~"$bot"';
  const timeout = `max without (instance, pod, node) (last_over_time(${s('killswitch_timer_timeout_seconds', 'market=~"$market"')}[${MEMORY}]))`;
  return [
    stat({
      title: 'Is every market protected?',
      description:
        'What the daemon says on /readyz: every configured market of a living bot is surely armed, and no bot is dead. ' +
        'NOTHING IS GUARDED: no timer should be armed, and no bot is dead. DOWN: a daemon does not answer Prometheus; its timers run on ' +
        'and fire.',
      expr: armedNumber(q),
      steps: ARMED_STEPS,
      names: ARMED,
      none: 'NO DAEMON',
    }),
    stat({
      title: 'Orders are cancelled in',
      description:
        'The least time that a timer has left: so long from now the exchange cancels the first orders if nothing ' +
        'more is renewed, as it is for no dead bot. It goes on falling when the daemon is dead. Below 0 they are ' +
        'gone, or may be at any moment. Markets that were never armed have no timer.',
      unit: 's',
      expr: `min(${q.standing}) - time()`,
      steps: LEFT,
      none: NONE,
      decimals: 0,
    }),
    stat({
      title: 'Least slack',
      description:
        'Of the timers that should be armed, as a share of the timeout. In good times it stays above 80 %; ' +
        'KillswitchTimerRunningOut pages below a half.',
      unit: 'percentunit',
      expr: `min((${q.wanted} - time()) / ${timeout})`,
      steps: SHARE,
      none: NONE,
      decimals: 0,
    }),
    stat({
      title: 'Age of the evidence',
      description:
        'How long ago the bot gave the last evidence that counted. Older than liveness.ttlSeconds (15 s where nothing ' +
        'else is configured) its timers are no longer renewed.',
      unit: 's',
      expr: `time() - min(max by (bot) (last_over_time(${s('killswitch_bot_last_evidence_timestamp_seconds', bot)}[${MEMORY}]) > 0))`,
      steps: [
        ['green', null],
        ['orange', 10],
        ['red', 15],
      ],
      none: 'not watched',
      decimals: 1,
    }),
    stat({
      title: 'Bot',
      description:
        'What the daemon knows of the bot. starting: no evidence yet, within the start-up grace. stale, failed: its ' +
        'timers are left to fire. goodbye: it ended well, and its timers end as shutdown.policy says.',
      expr: `${s('killswitch_bot_state', bot)} == 1`,
      legend: '{{bot}}: {{state}}',
      steps: [['blue', null]],
      none: 'NO DAEMON',
      textMode: 'name',
      overrides: [
        override('byRegexp', '.*: alive', fixed('green')),
        override('byRegexp', '.*: (stale|failed)', fixed('red')),
      ],
    }),
    stat({
      title: 'Exchange',
      description: 'Whether renewals get through to the exchange, and whether it answers pings.',
      expr: `2 * max(${s('killswitch_outage_active')}) + (1 - min(${s('killswitch_api_up')}))`,
      steps: [
        ['green', null],
        ['orange', 1],
        ['red', 2],
      ],
      names: [
        [0, 'ANSWERS', 'green'],
        [1, 'NO PINGS', 'orange'],
        [2, 'OUTAGE', 'red'],
        [3, 'OUTAGE', 'dark-red'],
      ],
      none: 'NO DAEMON',
    }),
  ];
}

function botTimers(config: MixinConfig, q: Queries, market: string): Row[] {
  const { s } = q;
  const counted = (metric: string) => `sum by (market) (increase(${s(metric, market)}[$__range]))`;
  const expiry = s('killswitch_timer_expiry_timestamp_seconds', market);
  const slack = graph({
    title: 'Slack of each timer',
    description:
      'A saw: each renewal fills it up, and at 0 the orders of that market are cancelled. A line that only falls ' +
      'is not renewed.',
    unit: 's',
    queries: [[`(${expiry} > 0) - time()`, '{{market}}']],
    legend: ['lastNotNull', 'min'],
    redBelow: 0,
    min: null,
  });
  const markets = table({
    title: 'Markets',
    description:
      'Every market of the bot as it stands now. Slack: what is left of the timeout. Last slack: what was left when ' +
      'the last renewal was confirmed.',
    none: '-',
    queries: [
      stateNumber(s, market),
      `max by (market) ((${expiry} > 0) - time())`,
      `max by (market) (${s('killswitch_timer_timeout_seconds', market)})`,
      `min by (market) (${s('killswitch_renewal_last_slack_ratio', market)})`,
      counted('killswitch_renewal_failures_total'),
      counted('killswitch_lapses_total'),
    ],
    labels: ['market'],
    joinBy: 'market',
    columns: [
      { name: 'state', shows: { mappings: mappings(STATES), ...filled } },
      { name: 'slack', shows: { unit: 's', ...stepped(LEFT), ...coloured, decimals: 0 } },
      { name: 'timeout', shows: { unit: 's' } },
      { name: 'last slack', shows: { unit: 'percentunit', ...stepped(SHARE), ...coloured, decimals: 0 } },
      { name: 'failures', shows: { decimals: 0 } },
      {
        name: 'lapses',
        shows: { ...warned('red', 0.5), ...filled, decimals: 0 },
      },
    ],
    sortBy: 'slack',
  });
  const states = timeline({
    title: 'State of each timer',
    description:
      'As in /api/v1/status. expired: it may have fired. retrying: surely armed, and the last attempt failed.',
    query: [stateNumber(s, market), '{{market}}'],
    names: STATES,
  });
  const confirmed = graph({
    title: 'Slack at the last confirmation',
    description:
      'How near it was: the share of the timeout that was left when a renewal was confirmed. A drop that recovers ' +
      'was an outage that cancelled nothing.',
    unit: 'percentunit',
    queries: [[s('killswitch_renewal_last_slack_ratio', market), '{{market}}']],
    legend: ['lastNotNull', 'min'],
    max: 1,
    redBelow: 0.5,
  });
  const firing = firingAlerts(config, ['instance', 'bot', 'market']);
  return [
    { height: 9, widths: [15, 9], panels: [slack, firing] },
    { height: 8, panels: [markets] },
    { height: 8, panels: [states, confirmed] },
  ];
}

function botItself({ s, quantile }: Queries): Panel[] {
  const bot = 'bot=~"$bot"';
  return [
    graph({
      title: 'Age of the evidence over time',
      description:
        'Below the dashed line the bot counts as alive. With liveness mode none there is no evidence, and nobody ' +
        'watches the bot.',
      unit: 's',
      queries: [
        [`time() - (${s('killswitch_bot_last_evidence_timestamp_seconds', bot)} > 0)`, '{{bot}}'],
        [`${s('killswitch_bot_evidence_ttl_seconds', bot)} > 0`, '{{bot}}: limit'],
      ],
      overrides: [
        override('byRegexp', '.*: limit', {
          'custom.lineStyle': { fill: 'dash', dash: [10, 10] },
          ...fixed('red'),
          'custom.fillOpacity': 0,
        }),
      ],
    }),
    graph({
      title: 'Beats',
      description: 'Beats that counted, and beats that did not: copies of older ones.',
      unit: 'reqps',
      queries: [
        [rate(s('killswitch_bot_beats_total', bot)), '{{bot}}'],
        [rate(s('killswitch_bot_beats_refused_total', bot)), '{{bot}}: refused'],
      ],
    }),
    graph({
      title: 'Gap between two beats',
      description:
        'Of all bots of the daemon. A gap near liveness.ttlSeconds is a bot that nearly lost its timers.',
      unit: 's',
      queries: medianAnd99(quantile, 'killswitch_bot_beat_gap_seconds'),
    }),
  ];
}

function botWay({ s, quantile }: Queries, market: string): Row[] {
  const pings = 'killswitch_ping_duration_seconds';
  const panels = [
    failuresByReason(s),
    graph({
      title: 'Attempts and confirmations',
      description: 'Renewals per second, of all markets. The two lie on each other in good times.',
      unit: 'reqps',
      queries: [
        [`sum(${rate(s('killswitch_requests_total', 'purpose="renew"'))})`, 'attempts'],
        [`sum(${rate(s('killswitch_renewals_total', market))})`, 'confirmed, chosen markets'],
      ],
    }),
    graph({
      title: 'Time of a request',
      description: 'Confirmed renewals of the daemon, from writing the request to its reply.',
      unit: 's',
      queries: medianAnd99(quantile, 'killswitch_renewal_duration_seconds'),
    }),
    graph({
      title: 'Outages and pings',
      description: '1 while no renewal gets through (outage), and 1 while pings are answered (pings).',
      unit: 'bool',
      legend: ['lastNotNull'],
      max: 1,
      queries: [
        [`max by (base) (${s('killswitch_outage_active')})`, '{{base}}: outage'],
        [`min by (base) (${s('killswitch_api_up')})`, '{{base}}: pings'],
      ],
    }),
    graph({
      title: 'Time of a ping',
      description: 'Answered pings of the public endpoint.',
      unit: 's',
      queries: [
        [quantile(0.5, pings, 'le, base'), '{{base}}: median'],
        [quantile(0.99, pings, 'le, base'), '{{base}}: 99 %'],
      ],
    }),
    graph({
      title: 'Delay of attempts',
      description:
        'From when an attempt was due to when it was written (delay), and until it was confirmed, with waiting and ' +
        'retries (cycle). A long delay is this host or the rate limit, a long cycle is the exchange.',
      unit: 's',
      queries: [
        [quantile(0.99, 'killswitch_schedule_delay_seconds'), 'delay, 99 %'],
        [quantile(0.99, 'killswitch_renewal_cycle_duration_seconds'), 'cycle, 99 %'],
      ],
    }),
  ];
  const title = 'The way to the exchange';
  return [
    { title, height: 8, panels: panels.slice(0, 3) },
    { height: 8, panels: panels.slice(3) },
  ];
}

function botEvents({ s }: Queries, market: string): Panel[] {
  const counted = (legend: string, metric: string, more = ''): Query => [
    `sum(${increase(s(metric, more))}) > 0`,
    legend,
  ];
  return [
    graph({
      title: 'Events of the timers',
      description:
        'Of the whole daemon, but for lapses. suspended: the bot is silent or gone. held: put on hold.',
      unit: 'short',
      as: 'bars',
      legend: ['sum'],
      queries: [
        counted('lapsed', 'killswitch_lapses_total', market),
        counted('guarantee ran out', 'killswitch_overdue_total'),
        counted('suspended', 'killswitch_suspensions_total'),
        counted('held', 'killswitch_holds_total'),
        counted('tripped', 'killswitch_trips_total'),
        counted('deleted', 'killswitch_deletes_total'),
        counted('refused', 'killswitch_refusals_total'),
        counted('altered', 'killswitch_altered_replies_total'),
      ],
    }),
    graph({
      title: 'Log lines',
      description:
        'Per second and level. An error line says that orders were cancelled, may be, or will be unless somebody acts.',
      unit: 'cps',
      as: 'bars',
      queries: [
        [`sum by (level) (${rate(s('killswitch_log_messages_total', 'level!="debug"'))})`, '{{level}}'],
      ],
    }),
    graph({
      title: 'Refused requests to the control listener',
      description: 'By reason, per second.',
      unit: 'reqps',
      as: 'stack',
      queries: [[`sum by (reason) (${rate(s('killswitch_control_refused_total'))}) > 0`, '{{reason}}']],
    }),
  ];
}

function botHost(q: Queries): Row[] {
  const { s, own, quantile } = q;
  const byInstance = (metric: string) => `max by (instance) (${s(metric)})`;
  const panels = [
    graph({
      title: 'Event loop',
      description: 'How late the process gets to its work. Above 0.25 s the daemon counts a stall.',
      unit: 's',
      queries: [
        [quantile(0.99, 'killswitch_wake_delay_seconds', 'instance, le'), '{{instance}}: 99 %'],
        [quantile(0.5, 'killswitch_wake_delay_seconds', 'instance, le'), '{{instance}}: 50 %'],
      ],
    }),
    standstills(s),
    memory(q, '{{instance}}'),
    graph({
      title: 'Computing time',
      description: 'Share of one core that the process uses.',
      unit: 'percentunit',
      legend: ['lastNotNull'],
      queries: [[own(rate(s('process_cpu_seconds_total'))), '{{instance}}']],
    }),
    clocks(q, '{{instance}}'),
  ];
  const daemon = table({
    title: 'Daemon',
    description: 'What runs, and whether its last configuration was taken.',
    queries: [
      `max by (instance, account, version, revision, node_version) (${s('killswitch_build_info')})`,
      byInstance('killswitch_config_last_reload_successful'),
      `max by (instance) (1000 * ${s('killswitch_config_last_reload_success_timestamp_seconds')})`,
      byInstance('killswitch_config_hash'),
      byInstance('killswitch_survivable_outage_seconds'),
      byInstance('killswitch_cadence_factor'),
      byInstance('killswitch_capacity_requests_per_second'),
    ],
    labels: ['instance', 'account', 'version', 'revision', 'node_version'],
    joinBy: 'instance',
    columns: [
      null,
      {
        name: 'configuration taken',
        shows: {
          mappings: mappings([
            [0, 'REJECTED', 'red'],
            [1, 'yes', 'green'],
          ]),
          ...coloured,
        },
      },
      { name: 'since', shows: { unit: 'dateTimeFromNow' } },
      { name: 'configuration' },
      { name: 'survives', shows: { unit: 's' } },
      { name: 'cadence', shows: { unit: 'none', decimals: 2 } },
      { name: 'capacity', shows: { unit: 'reqps' } },
    ],
  });
  return [
    { title: 'Host and process', height: 8, widths: [6, 6, 4, 4, 4], panels },
    { height: 6, panels: [daemon] },
  ];
}
