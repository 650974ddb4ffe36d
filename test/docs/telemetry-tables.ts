import { Registry } from 'prom-client';
import { CERTAINTIES, type Notice, SUSPENSIONS } from '../../src/core/notice.ts';
import { FAILURE_REASONS } from '../../src/core/outcome.ts';
import { MARKET_STATES } from '../../src/core/snapshot.ts';
import { STALL_KINDS } from '../../src/telemetry/count.ts';
import { declareDaemonFamilies } from '../../src/telemetry/daemon-metrics.ts';
import { describeNotice } from '../../src/telemetry/events.ts';
import {
  declareMarketCounters,
  declareMarketFacts,
  declareMarketGauges,
} from '../../src/telemetry/market-metrics.ts';
import { EVERY_NOTICE } from '../telemetry/every-notice.ts';
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

/** The metrics of the program itself, in the order of the page: without and with the label `market`. */
async function declaredFamilies(): Promise<{ daemon: Family[]; market: Family[]; runtime: Family[] }> {
  const { registry } = declareDaemonFamilies();
  const all = await familiesOf(registry);
  const markets = new Registry();
  declareMarketGauges(markets);
  declareMarketFacts(markets);
  declareMarketCounters(markets, () => {});
  const isOwn = ({ name }: Family) => name.startsWith('killswitch_');
  return {
    daemon: all.filter(isOwn),
    runtime: all.filter((family) => !isOwn(family)),
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
  const { daemon, market, runtime } = await declaredFamilies();
  const labels = table(
    ['Label', 'Values'],
    [
      labelRow('`state` of `killswitch_market_state`', MARKET_STATES),
      labelRow('`reason` of failures of renewals and pings', FAILURE_REASONS),
      labelRow('`reason` of `killswitch_suspensions_total`', SUSPENSIONS),
      labelRow('`certainty` of `killswitch_lapses_total`', CERTAINTIES),
      labelRow('`kind` of `killswitch_stalls_total`', Object.values(STALL_KINDS)),
    ],
  );
  const suffixes = ['_bucket', '_sum', '_count'];
  const metricNames = new Set(
    [...daemon, ...market, ...runtime].flatMap(({ name, type }) =>
      type === 'histogram' ? [name, ...suffixes.map((suffix) => name + suffix)] : [name],
    ),
  );
  const blocks = new Map([
    ['metrics of markets', metricsTable(market)],
    ['metrics of the daemon', metricsTable(daemon)],
    ['label values', labels],
    ['log events', eventTable()],
  ]);
  return { blocks, metricNames };
}

/** The other codes of the kinds whose code depends on what happened. */
const VARIANTS: readonly Notice[] = [
  { ...EVERY_NOTICE.renewed, first: true },
  { ...EVERY_NOTICE.stall, what: 'suspend' },
  { ...EVERY_NOTICE.stall, what: 'clock-step' },
  { ...EVERY_NOTICE.pinged, ok: true, latencyMs: 20, reason: null, detail: '' },
];

/** One row per code, with the level and the sentence of an example. */
function eventTable(): string {
  const now = { monoMs: 0, bootMs: 0, wallMs: 1_795_000_000_000 };
  const rows = [...Object.values(EVERY_NOTICE), ...VARIANTS].map((notice) => {
    const { event, level, msg } = describeNotice(notice, { bases: ['https://exchange.example'] }, now);
    return [code(event), level, msg];
  });
  return table(
    ['Event', 'Level', 'Example'],
    rows.toSorted(([one = ''], [other = '']) => (one < other ? -1 : 1)),
  );
}
