import { FAILURE_REASONS } from '../../src/core/events.ts';
import { CERTAINTIES, FIRINGS, HOLDS, SUSPENSIONS } from '../../src/core/notice.ts';
import type { Instant } from '../../src/core/time.ts';
import { MARKET_STATES } from '../../src/core/view.ts';
import { createLogLevels, createOperations } from '../../src/daemon/telemetry.ts';
import { REFUSALS } from '../../src/operator/control-sources.ts';
import type { Clock } from '../../src/ports.ts';
import { describeNotice, type EventLine } from '../../src/telemetry/events.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { BOT_STATES, NOT_HELD, PURPOSES, REMOVALS, STALL_KINDS } from '../../src/telemetry/metrics.ts';
import { NOTIFY_WHATS } from '../../src/telemetry/notifications.ts';
import { EVERY_NOTICE, OTHER_NOTICES } from '../telemetry/every-notice.ts';
import { metricsOf } from '../telemetry/scrape.ts';
import { code, table } from './markdown.ts';

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Every metric of a page, in its order. */
async function declaredFamilies(): Promise<Family[]> {
  const { registry } = metricsOf();
  return (await registry.getMetricsAsJSON()).map(({ name, help, type }) => {
    const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { labelNames?: string[] };
    return { name, help, type: String(type), labels: labelNames };
  });
}

/** The metrics of the program itself: those of a market, of a bot, and of the daemon. */
function metricsTable(families: readonly Family[]): string {
  const own = families.filter(({ name }) => name.startsWith('killswitch_'));
  const [ofMarkets, others] = split(own, 'market');
  const rows = [ofMarkets, ...split(others, 'bot')].flat().map(({ name, type, labels, help }) => {
    const described = labels.map((label) => describeLabel(label, name));
    return [code(name), type, described.join('; '), help];
  });
  return table(['Metric', 'Type', 'Labels', 'Meaning'], rows);
}

const split = (families: readonly Family[], label: string): [Family[], Family[]] => [
  families.filter(({ labels }) => labels.includes(label)),
  families.filter(({ labels }) => !labels.includes(label)),
];

/** Of some metrics the label whose values are a closed set. */
const closed = (of: string, label: string, values: readonly string[], explained?: string) => {
  return { of: of.split(' ').map((name) => `killswitch_${name}`), label, values, explained };
};

/** Every label of this program whose values are a closed set, and where a table explains them. */
export const CLOSED_LABELS = [
  closed('market_state', 'state', MARKET_STATES),
  closed('market_held', 'reason', [NOT_HELD, ...HOLDS]),
  closed('holds_total', 'reason', HOLDS),
  closed('requests_total request_failures_total', 'purpose', PURPOSES),
  closed('request_failures_total ping_failures_total', 'reason', FAILURE_REASONS, '[below](#label-values)'),
  closed('suspensions_total', 'reason', SUSPENSIONS),
  closed('fired_total', 'reason', FIRINGS),
  closed('markets_removed_total', 'how', REMOVALS),
  closed('bot_state bot_changes_total', 'state', BOT_STATES),
  closed('lapses_by_certainty_total', 'certainty', CERTAINTIES),
  closed('stalls_total', 'kind', Object.values(STALL_KINDS)),
  closed('stall_seconds', 'kind', [STALL_KINDS.stall, STALL_KINDS.suspend]),
  closed('control_refused_total', 'reason', REFUSALS, 'the `code` of the [refusal](http.md#refusals)'),
  closed('notify_failures_total', 'what', NOTIFY_WHATS),
];

/** Labels whose values the table does not list: most are names of the configuration. */
const OPEN_LABELS = 'market bot mode order_types policy base version revision node_version level'.split(' ');

/** A label of the metric, with its values where they are a closed set. */
function describeLabel(label: string, metric: string): string {
  const found = CLOSED_LABELS.find((set) => set.label === label && set.of.includes(metric));
  if (found === undefined && OPEN_LABELS.includes(label)) return code(label);
  if (found === undefined) throw new Error(`CLOSED_LABELS has no values for ${label} of ${metric}`);
  return `${code(label)}: ${found.explained ?? found.values.join(', ')}`;
}

/** The blocks, every name that a page of metrics may show, and the labels of each of them. */
export async function telemetryTables() {
  const families = await declaredFamilies();
  const suffixes = ['_bucket', '_sum', '_count'];
  const labelsOf = new Map(
    families.flatMap(({ name, type, labels }) =>
      (type === 'histogram' ? ['', ...suffixes] : ['']).map((suffix): [string, readonly string[]] => [
        name + suffix,
        suffix === '_bucket' ? [...labels, 'le'] : labels,
      ]),
    ),
  );
  const blocks = new Map([
    ['metrics', metricsTable(families)],
    ['log events', eventTable()],
  ]);
  return { blocks, metricNames: new Set(labelsOf.keys()), labelsOf };
}

/** One row per code, with the levels of its examples and the sentence of the first. */
function eventTable(): string {
  const now = { monoMs: 0, bootMs: 0, wallMs: 1_795_000_000_000 };
  const bases = ['https://exchange.example'];
  const lines = [
    ...[...Object.values(EVERY_NOTICE), ...OTHER_NOTICES].map((notice) => describeNotice(notice, bases, now)),
    ...linesOfOperations(now),
  ];
  const examples = new Map<string, string>();
  const levels = new Map<string, Set<string>>();
  for (const { event, level, msg } of lines) {
    if (!examples.has(event)) examples.set(event, msg);
    levels.set(event, (levels.get(event) ?? new Set()).add(level));
  }
  return table(
    ['Event', 'Level', 'Example'],
    [...examples]
      .map(([event, example]) => [code(event), [...(levels.get(event) ?? [])].join(', '), example])
      .toSorted(([one = ''], [other = '']) => (one < other ? -1 : one > other ? 1 : 0)),
  );
}

/** One line of each operation, as the log is told it. */
function linesOfOperations(now: Instant): EventLine[] {
  const lines: EventLine[] = [];
  const clock: Clock = { now: () => now, after: () => () => {} };
  const quiet = createLog({
    level: 'info',
    format: 'json',
    clock,
    write: (bytes, done) => setImmediate(() => done(null, bytes.length)),
  });
  const log = { ...quiet, tell: (line: EventLine) => void lines.push(line) };
  const operations = createOperations(log, metricsOf(), clock);
  operations.commanded({
    command: 'disarm',
    markets: ['BTC_USDT'],
    reason: 'maintenance',
    sender: 'killswitchd (uid 0, pid 7)',
    via: 'unix:/run/control.sock, open to uid 0',
  });
  operations.reloadApplied('signal', 'c0ffee00c0ffee00');
  operations.reloadUnchanged('command', 'c0ffee00c0ffee00');
  operations.reloadRejected('signal', [
    'killswitchd.yaml:3: markets[0].timeoutSeconds: found 4; allowed are whole seconds from 5 to 600',
  ]);
  operations.acknowledged(['BTC_USDT']);
  operations.controlListening('unix:/run/killswitchd/control.sock');
  operations.controlRefused('foreign_origin');
  createLogLevels(log, clock).set('debug', 600_000);
  return lines;
}
