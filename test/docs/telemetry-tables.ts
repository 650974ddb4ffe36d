import { Registry } from 'prom-client';
import { CERTAINTIES, HOLDS, SUSPENSIONS } from '../../src/core/notice.ts';
import { FAILURE_REASONS } from '../../src/core/outcome.ts';
import { MARKET_STATES } from '../../src/core/snapshot.ts';
import { REFUSALS } from '../../src/operator/control-refusal.ts';
import { BOT_SHARDS, BOT_STATES } from '../../src/telemetry/bot-metrics.ts';
import { REMOVALS, STALL_KINDS } from '../../src/telemetry/count.ts';
import { declareDaemonFamilies } from '../../src/telemetry/daemon-metrics.ts';
import { describeNotice } from '../../src/telemetry/events.ts';
import { MARKET_SHARDS } from '../../src/telemetry/market-metrics.ts';
import { describeOperation } from '../../src/telemetry/operations.ts';
import { createShard } from '../../src/telemetry/shard.ts';
import { EVERY_NOTICE, EVERY_OPERATION, OTHER_NOTICES } from '../telemetry/every-notice.ts';
import { code, table } from './markdown.ts';

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
}

async function familiesOf(registry: Registry): Promise<Family[]> {
  const described = await registry.getMetricsAsJSON();
  return described.map(({ name, help, type }) => {
    const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { labelNames?: string[] };
    return { name, help, type: String(type), labels: labelNames };
  });
}

interface Declared {
  readonly daemon: Family[];
  readonly bot: Family[];
  readonly market: Family[];
  readonly runtime: Family[];
}

/** The metrics of the program itself, in the order of the page, and those of the runtime. */
async function declaredFamilies(): Promise<Declared> {
  const all = await familiesOf(declareDaemonFamilies().registry);
  const [bots, markets] = [new Registry(), new Registry()];
  createShard(BOT_SHARDS, bots);
  createShard(MARKET_SHARDS, markets);
  const isOwn = ({ name }: Family) => name.startsWith('killswitch_');
  return {
    daemon: all.filter(isOwn),
    runtime: all.filter((family) => !isOwn(family)),
    bot: await familiesOf(bots),
    market: await familiesOf(markets),
  };
}

const metricsTable = (families: readonly Family[]) =>
  table(
    ['Metric', 'Type', 'Labels', 'Meaning'],
    families.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), help]),
  );

const labelRow = (label: string, values: readonly string[]) => [label, values.map(code).join(', ')];

export interface TelemetryTables {
  readonly blocks: ReadonlyMap<string, string>;
  /** Every name that a page of metrics may show. */
  readonly metricNames: ReadonlySet<string>;
}

export async function telemetryTables(): Promise<TelemetryTables> {
  const { daemon, bot, market, runtime } = await declaredFamilies();
  const labels = table(
    ['Label', 'Values'],
    [
      labelRow('`state` of `killswitch_market_state`', MARKET_STATES),
      labelRow('`reason` of failures of renewals and pings', FAILURE_REASONS),
      labelRow('`reason` of `killswitch_suspensions_total`', SUSPENSIONS),
      labelRow('`reason` of `killswitch_market_held` and `killswitch_holds_total`', HOLDS),
      labelRow('`reason` of `killswitch_control_refused_total`', REFUSALS),
      labelRow('`how` of `killswitch_markets_removed_total`', REMOVALS),
      labelRow('`state` of `killswitch_bot_state` and `killswitch_bot_changes_total`', BOT_STATES),
      labelRow('`certainty` of `killswitch_lapses_total`', CERTAINTIES),
      labelRow('`kind` of `killswitch_stalls_total`', Object.values(STALL_KINDS)),
    ],
  );
  const suffixes = ['_bucket', '_sum', '_count'];
  const metricNames = new Set(
    [...daemon, ...bot, ...market, ...runtime].flatMap(({ name, type }) =>
      type === 'histogram' ? [name, ...suffixes.map((suffix) => name + suffix)] : [name],
    ),
  );
  const blocks = new Map([
    ['metrics of markets', metricsTable(market)],
    ['metrics of bots', metricsTable(bot)],
    ['metrics of the daemon', metricsTable(daemon)],
    ['label values', labels],
    ['log events', eventTable()],
  ]);
  return { blocks, metricNames };
}

/** One row per code and level, with the sentence of an example. */
function eventTable(): string {
  const now = { monoMs: 0, bootMs: 0, wallMs: 1_795_000_000_000 };
  const context = { bases: ['https://exchange.example'] };
  const lines = [
    ...[...Object.values(EVERY_NOTICE), ...OTHER_NOTICES].map((notice) =>
      describeNotice(notice, context, now),
    ),
    ...Object.values(EVERY_OPERATION).map((operation) => describeOperation(operation, now)),
  ];
  const rows = new Map<string, readonly string[]>();
  for (const { event, level, msg } of lines) {
    const key = `${event} ${level}`;
    if (!rows.has(key)) rows.set(key, [code(event), level, msg]);
  }
  return table(
    ['Event', 'Level', 'Example'],
    [...rows.values()].toSorted(([one = ''], [other = '']) => (one < other ? -1 : one > other ? 1 : 0)),
  );
}
