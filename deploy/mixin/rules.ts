import { stringify } from 'yaml';
import type { MixinConfig } from './config.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

interface Alert {
  readonly expr: string;
  /** How long it must last; none for at once. */
  readonly lasting?: string;
  readonly summary: string;
  readonly description: string;
  /** The dashboard that shows more. */
  readonly dashboard?: 'fleet' | 'bot';
}
type Alerts = Readonly<Record<string, Alert>>;

export const WATCHDOG = 'KillswitchWatchdog';

const HEADER = `# Recording and alert rules for killswitchd, written by \`npm run mixin\` from deploy/mixin: change them there.
#
#   promtool check rules --lint=all killswitchd.rules.yaml
#
# Two labels of the targets matter. \`job\` must contain "killswitchd", or be what the mixin's selector says. \`account\`
# must differ between daemons that guard the same market on different accounts: a rollout changes instance, pod and node,
# so the rules about a market ignore these three, and only \`account\` (and your other target labels, as namespace and
# cluster) keeps two daemons apart. KillswitchGuardedTwice finds out where it is missing.
#
# What to do stands in docs/runbooks.md, one section per alert.

`;

/** The rule file that Prometheus loads. */
export function rulesFile(config: MixinConfig): string {
  return HEADER + stringify({ groups: groupsOf(config) }, { lineWidth: 0 });
}

/** The same rules as an object of the Prometheus operator. */
export function rulesObject(config: MixinConfig): string {
  const object = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'killswitchd', labels: config.ruleObjectLabels },
    spec: { groups: groupsOf(config) },
  };
  return HEADER + stringify(object, { lineWidth: 0 });
}

function groupsOf(config: MixinConfig): unknown[] {
  const s = selectorOf(config);
  const volatile = config.volatileLabels.join(', ');
  const rules = (severity: keyof MixinConfig['severities'], alerts: Alerts) =>
    Object.entries(alerts).map(([name, alert]) => ruleOf(config, name, config.severities[severity], alert));
  const critical = rules('critical', { ...timerAlerts(s, volatile), ...daemonAlerts(s, volatile) });
  const others = [...rules('warning', warnings(s, volatile)), ...rules('info', infos(s))];
  return [
    // Quick enough to page in time. One group, so that no alert goes by what was recorded seconds before.
    { name: 'killswitchd-critical', interval: '5s', rules: [...recordingsOf(s, volatile), ...critical] },
    { name: 'killswitchd-warning', interval: '15s', rules: others },
  ];
}

function ruleOf(config: MixinConfig, name: string, severity: string, { expr, lasting, ...said }: Alert) {
  const { summary, description, dashboard = 'fleet' } = said;
  const query = dashboard === 'bot' ? '?var-instance={{ $labels.instance }}' : '';
  return {
    alert: name,
    expr,
    ...(lasting === undefined ? {} : { for: lasting }),
    labels: { severity, ...config.alertLabels },
    annotations: {
      summary,
      description,
      runbook_url: `${config.runbookUrl}#${name.toLowerCase()}`,
      dashboard_url: `${config.grafanaUrl}/d/killswitchd-${dashboard}${query}`,
    },
  };
}

/** A selector of one metric, with further matchers. */
type Select = (metric: string, more?: string) => string;

const selectorOf =
  ({ selector }: MixinConfig): Select =>
  (metric, more = '') =>
    `${metric}{${[selector, more].filter((text) => text !== '').join(', ')}}`;

const WANTED = 'instance_market:killswitch_wanted_expiry_timestamp_seconds:last';
/** What tells one daemon from another. */
const TARGET = 'job, instance, account, cluster, namespace, pod';
/** When the time of a timer was up that no daemon had armed which answers, as long as that lasts. */
const ABANDONED = 'market:killswitch_abandoned_expiry_timestamp_seconds:last';
const FAILING = 'instance:killswitch_renewal_failures:ratio_rate5m';
const SLACK_P05 = 'instance:killswitch_renewal_slack_ratio:p05_10m';

function recordingsOf(s: Select, volatile: string): Recording[] {
  const expiry = s('killswitch_timer_expiry_timestamp_seconds');
  return [
    {
      // The expiry of each timer that should be armed. Where a target is gone or does not answer, what it said last, for
      // an hour after the timer's end: a daemon that died does not take its alerts with it. Where it answers, only what
      // it says now, counted from its scrape: a timer of 5 s would else run out between two scrapes, and a market that
      // left the configuration is nobody's concern.
      record: WANTED,
      expr: `(((${expiry} > 0) - timestamp(${expiry}) + time() or (${expiry} == 0)) and (${s('killswitch_market_armed_desired')} == 1))
or
(
    (${WANTED} unless on (${TARGET}) (${s('up')} == 1))
  >
    (time() - 3600)
)`,
    },
    {
      // A daemon that had the timer armed itself counts what it could not keep, and says so.
      record: ABANDONED,
      expr: `((max without (${volatile}) (${WANTED}) < time()) > 0)
unless
(max without (${volatile}) (${s('killswitch_market_armed_desired')}) == 0)
unless
max without (${volatile}) ((${WANTED} > 0) and on (${TARGET}) (${s('up')} == 1))`,
    },
    {
      record: FAILING,
      expr: `sum without (purpose, reason) (rate(${s('killswitch_request_failures_total', 'purpose="renew"')}[5m]))
/
sum without (purpose) (rate(${s('killswitch_requests_total', 'purpose="renew"')}[5m]))`,
    },
    {
      // One renewal in twenty was confirmed with less slack than this.
      record: SLACK_P05,
      expr: `histogram_quantile(0.05, rate(${s('killswitch_renewal_slack_ratio_bucket')}[10m]))`,
    },
  ];
}

/** Critical: a market. */
function timerAlerts(s: Select, volatile: string): Alerts {
  const desired = s('killswitch_market_armed_desired');
  const expiry = s('killswitch_timer_expiry_timestamp_seconds');
  const timeout = s('killswitch_timer_timeout_seconds');
  return {
    KillswitchUnarmed: {
      expr: `(max without (${volatile}) (${WANTED}) < time())
unless
(max without (${volatile}) (${desired}) == 0)`,
      // A rollout with a gap of half a minute between the two daemons is no reason to wake anybody.
      lasting: '30s',
      summary: 'No timer surely guards {{ $labels.market }}.',
      description:
        'The timer of {{ $labels.market }} should be armed, and {{ if eq $value 0.0 }}none is confirmed{{ else }}its ' +
        'time was up at {{ $value | humanizeTimestamp }}: its orders were cancelled or may be at any moment{{ end }}. ' +
        'New orders are not guarded.',
    },
    KillswitchTimerRunningOut: {
      // It is told by the clock, without waiting for another scrape: at half of the timeout, so that the page is out
      // while a third of it is left. The slack at the scrape keeps short timeouts quiet, of which a scrape is always late.
      // A timer that is wanted, or was given another timeout, a moment ago has a moment to be renewed.
      expr: `(((${expiry} > 0) - time()) / ${timeout} < 0.5)
and ((${expiry} - timestamp(${expiry})) / ${timeout} < 0.6)
and (${desired} == 1 unless (min_over_time(${desired}[15s]) == 0))
unless (changes(${timeout}[15s]) > 0)`,
      summary: 'The timer of {{ $labels.market }} is not being renewed.',
      description:
        'Slack is {{ $value | humanizePercentage }} of the timeout: renewals do not get through. The exchange cancels ' +
        'the orders of {{ $labels.market }} when no slack is left.',
      dashboard: 'bot',
    },
    KillswitchLapsed: {
      expr: `increase(${s('killswitch_lapses_total')}[10m]) > 0`,
      summary: 'The timer of {{ $labels.market }} fired although its bot lives.',
      description:
        'A lapse: the exchange cancelled the orders of {{ $labels.market }}, or may have. The log line "lapsed" says ' +
        'which. The bot may not know that its orders are gone.',
      dashboard: 'bot',
    },
    KillswitchHeldAfterLapse: {
      expr: `${s('killswitch_market_held', 'reason="lapsed"')} == 1`,
      summary: '{{ $labels.market }} lapsed and stays unguarded until somebody arms it.',
      description:
        'onLapse is "hold": the daemon makes no new timer for {{ $labels.market }} until an operator says so. New ' +
        'orders of the bot are not guarded.',
      dashboard: 'bot',
    },
    KillswitchMarketRejected: {
      // A market that was never armed is called rejected while the key is: that is told once.
      expr: `${s('killswitch_market_state', 'state="rejected"')} == 1
unless on (${TARGET}) (${s('killswitch_authorised')} == 0)`,
      lasting: '30s',
      summary: 'The exchange refuses the timer of {{ $labels.market }}.',
      description:
        'No new timer guards {{ $labels.market }}; an armed one fires when its time is up. Other markets go on.',
      dashboard: 'bot',
    },
  };
}

/** Critical: a daemon or a bot. */
function daemonAlerts(s: Select, volatile: string): Alerts {
  return {
    KillswitchKeyRefused: {
      expr: `${s('killswitch_authorised')} == 0`,
      lasting: '15s',
      summary: 'The exchange refuses the API key of {{ $labels.instance }}.',
      description:
        'No timer of this daemon can be renewed. Each fires when its time is up, and its orders are cancelled.',
      dashboard: 'bot',
    },
    KillswitchBotSilent: {
      expr: `${s('killswitch_bot_state', 'state=~"stale|failed"')} == 1`,
      lasting: '15s',
      summary: 'Bot {{ $labels.bot }} is {{ $labels.state }}: its timers are no longer renewed.',
      description:
        'The bot {{ if eq $labels.state "failed" }}has failed{{ else }}gives no evidence that it lives{{ end }}. The ' +
        'exchange cancels its orders when its timers fire.',
      dashboard: 'bot',
    },
    KillswitchTripFailing: {
      expr: `sum without (purpose, reason) (increase(${s('killswitch_request_failures_total', 'purpose="trip"')}[2m])) > 2`,
      summary: 'Orders should be cancelled now at {{ $labels.instance }}, and are not.',
      description:
        'Cutting timers short has failed {{ $value | humanize }} times in two minutes. The orders stay until the armed ' +
        'timers fire.',
      dashboard: 'bot',
    },
    KillswitchStuck: {
      expr: `${s('killswitch_live')} == 0`,
      lasting: '15s',
      summary: 'The loop of {{ $labels.instance }} makes no progress.',
      description: 'The daemon answers, and renews nothing. Its timers fire when their time is up.',
      dashboard: 'bot',
    },
    KillswitchDown: {
      expr: `${s('up')} == 0
or
(${s('up')} unless on (${TARGET}) ${s('killswitch_build_info')})`,
      // A restart takes a second or two, and a pod that ends is a target for a moment longer.
      lasting: '30s',
      summary: 'killswitchd at {{ $labels.instance }} does not answer.',
      description:
        'If it is dead, nothing is renewed: the exchange cancels the orders of its markets within their timeouts.',
    },
    KillswitchGone: {
      expr: `max without (${volatile}, version, revision, node_version) (last_over_time(${s('killswitch_build_info')}[6h]))
unless
max without (${volatile}) (${s('up')})`,
      lasting: '2m',
      summary: 'No daemon is left where there was one.',
      description:
        'A daemon of {{ $labels.job }}{{ with $labels.namespace }} in {{ . }}{{ end }}{{ with $labels.account }} for ' +
        'account {{ . }}{{ end }} was scraped in the last 6 h, and no target is left.',
    },
    KillswitchShardMissing: {
      // Where `shard.count` is larger than the shards that run, nobody wants the markets of those that do not.
      expr: `max without (${volatile}) (${s('killswitch_fleet_markets')})
>
sum without (${volatile}) (${s('killswitch_shard_markets')})`,
      lasting: '2m',
      summary: 'No shard guards some of the {{ $value }} markets.',
      description:
        'The shards of {{ $labels.job }}{{ with $labels.account }} for account {{ . }}{{ end }} that answer have fewer ' +
        'markets than the fleet. The timers of the others fire, and their orders are cancelled.',
    },
    KillswitchAbsent: {
      expr: `absent(${s('up')})`,
      lasting: '2m',
      summary: 'Prometheus knows no killswitchd at all.',
      description: 'No target is selected as killswitchd, so that no other alert of these can fire.',
    },
  };
}

function warnings(s: Select, volatile: string): Alerts {
  return {
    KillswitchOutage: {
      expr: `${s('killswitch_outage_active')} == 1`,
      lasting: '30s',
      summary: 'No renewal gets through to {{ $labels.base }}.',
      description:
        'They take another address where sameAccount allows one. Else one at a time is tried as a probe, and the timers ' +
        'fire if the outage lasts longer.',
    },
    KillswitchNearMiss: {
      expr: `increase(${s('killswitch_overdue_total')}[15m]) > 0`,
      summary: 'A timer of {{ $labels.instance }} was not surely armed for a while.',
      description:
        'It was not known then whether it fired; KillswitchLapsed says so if it did. The log line "overdue" names it.',
    },
    KillswitchTakenOverLate: {
      // Only once the timer is armed: until then it is KillswitchUnarmed that tells.
      expr: `max_over_time(${ABANDONED}[10m])
and
(max without (${volatile}) (${WANTED}) > time())`,
      summary: 'The timer of {{ $labels.market }} ran out between two processes.',
      description:
        'Its time was up at {{ $value | humanizeTimestamp }}, before another process had it armed: its orders were ' +
        'cancelled, unless the timer had been deleted. The new process knows nothing of that.',
    },
    KillswitchRenewalsFailing: {
      expr: `${FAILING} > 0.2`,
      lasting: '5m',
      summary: '{{ $value | humanizePercentage }} of the renewals of {{ $labels.instance }} fail.',
      description:
        'They are retried and get through so far. The reasons are in killswitch_request_failures_total.',
    },
    KillswitchSlackLow: {
      expr: `${SLACK_P05} < 0.5`,
      lasting: '5m',
      summary: 'Renewals of {{ $labels.instance }} come late.',
      description:
        'One in twenty was confirmed when slack was below {{ $value | humanizePercentage }} of the timeout.',
    },
    KillswitchLittleRoom: {
      expr: `${s('killswitch_survivable_outage_ratio')} < 1 / 3`,
      lasting: '10m',
      summary: 'A market of {{ $labels.instance }} survives only short outages.',
      description:
        'An outage of {{ $value | humanizePercentage }} of the timeout cancels orders: timers are renewed too rarely.',
    },
    KillswitchClockSkewed: {
      expr: `abs(${s('killswitch_clock_skew_seconds')}) > 2`,
      lasting: '5m',
      summary: 'The clock of {{ $labels.instance }} is wrong.',
      description:
        'It differs from the exchange\'s by {{ $value | humanize }} s. With nonce "window", 5 s are too many.',
    },
    KillswitchHostStalls: {
      expr: `increase(${s('killswitch_stalls_total')}[1h]) > 5`,
      summary: '{{ $labels.instance }} stands still now and then ({{ $labels.kind }}).',
      description: '{{ $value | humanize }} times in the last hour. Nothing is renewed meanwhile.',
    },
    KillswitchRestarting: {
      expr: `changes(${s('process_start_time_seconds')}[30m]) > 3`,
      summary: 'killswitchd at {{ $labels.instance }} starts again and again.',
      description:
        '{{ $value | humanize }} starts in 30 minutes. Each gives a silent bot a new start-up grace.',
    },
    KillswitchReloadRejected: {
      expr: `${s('killswitch_config_last_reload_successful')} == 0`,
      lasting: '1m',
      summary: 'The new configuration of {{ $labels.instance }} is rejected.',
      description: 'The old one stays in force. Where the new one is wrong, a restart with it fails.',
    },
    KillswitchOutOfGuard: {
      expr: `${s('killswitch_market_held', 'reason=~"disarmed|paused|tripped"')} == 1`,
      lasting: '1h',
      summary: '{{ $labels.market }} has been on hold for an hour.',
      description:
        'An operator put it on hold ({{ $labels.reason }}). New orders of its bot are not guarded.',
      dashboard: 'bot',
    },
    KillswitchDeleteFailing: {
      expr: `sum without (purpose, reason) (increase(${s('killswitch_request_failures_total', 'purpose="delete"')}[10m])) > 3`,
      summary: 'Timers of {{ $labels.instance }} cannot be deleted.',
      description:
        '{{ $value | humanize }} deletes failed in ten minutes. A timer that is not deleted fires, and its orders are cancelled.',
      dashboard: 'bot',
    },
    KillswitchReplyAltered: {
      expr: `increase(${s('killswitch_altered_replies_total')}[15m]) > 0`,
      summary: 'The exchange set another timer than {{ $labels.instance }} asked for.',
      description:
        'Another timeout or other order types; the daemon goes by the shorter timeout. The log line "altered" names it.',
    },
    KillswitchStrangerKnocks: {
      expr: `increase(${s('killswitch_control_refused_total', 'reason=~"unauthorised|foreign_origin|wrong_host"')}[15m]) > 3`,
      summary: 'Somebody without permission asks the control listener of {{ $labels.instance }}.',
      description: '{{ $value | humanize }} requests were refused in 15 minutes ({{ $labels.reason }}).',
    },
    KillswitchLogLost: {
      expr: `increase(${s('killswitch_log_dropped_total')}[15m]) > 0`,
      summary: 'Log lines of {{ $labels.instance }} are lost.',
      description: '{{ $value | humanize }} lines were dropped in 15 minutes because nobody read them.',
    },
    KillswitchNotifyFailing: {
      expr: `increase(${s('killswitch_notify_failures_total')}[15m]) > 3`,
      summary: 'What {{ $labels.instance }} has to say does not arrive.',
      description:
        '{{ $value | humanize }} attempts to deliver a {{ $labels.what }} of the section notify failed in 15 minutes.',
    },
    KillswitchGuardedTwice: {
      expr: `count without (${volatile}) (${s('killswitch_market_armed_desired')} == 1) > 1`,
      lasting: '10m',
      summary: '{{ $value }} daemons seem to guard {{ $labels.market }}.',
      description:
        'Either they do, and the death of one goes unnoticed here, or their targets lack the label "account".',
    },
  };
}

function infos(s: Select): Alerts {
  return {
    KillswitchSlowedDown: {
      expr: `${s('killswitch_cadence_factor')} > 1`,
      lasting: '10m',
      summary: 'The exchange slows {{ $labels.instance }} down.',
      description:
        'Renewals are {{ $value | humanize }} times as far apart as planned, because of its rate limit.',
    },
    KillswitchPingsFailing: {
      expr: `${s('killswitch_api_up')} == 0`,
      lasting: '5m',
      summary: '{{ $labels.base }} answers no pings.',
      description: 'Renewals are tried all the same. If they fail as well, other alerts say so.',
    },
    [WATCHDOG]: {
      expr: 'vector(1)',
      summary: 'The alerts of killswitchd reach you.',
      description:
        'This alert always fires. Send it to a service outside that calls you when it stops: then nobody would be told ' +
        'of any other alert either.',
    },
  };
}
