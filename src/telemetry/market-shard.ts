import { Registry } from 'prom-client';
import { CERTAINTIES, SUSPENSIONS } from '../core/notice.ts';
import { FAILURE_REASONS } from '../core/outcome.ts';
import { MARKET_STATES, type MarketPhase, type MarketSnapshot } from '../core/snapshot.ts';
import {
  declareMarketCounters,
  declareMarketFacts,
  declareMarketGauges,
  MARKET_STATE_METRIC,
  type MeteredMarket,
} from './market-metrics.ts';

export type MarketCounters = ReturnType<typeof declareMarketCounters>;

/**
 * The metrics of a bounded number of markets, in a registry of their own. prom-client builds the text of a metric in
 * one piece: over ten thousand markets that would hold the event loop for a tenth of a second and more. Most of the
 * series hardly ever change, so each text is kept until one of its values does.
 */
export interface MarketShard {
  readonly counters: MarketCounters;
  readonly size: () => number;
  /** Creates every series of a market with its value before anything has happened, so that no query misses one. */
  add(metered: MeteredMarket): void;
  /** Takes every series of a market away: one that was dropped from the configuration must not look armed. */
  remove(market: string): void;
  /** Sets the gauges of every market that `lookup` knows. */
  refresh(lookup: (market: string) => MarketSnapshot | undefined): void;
  /** Names of the metrics, the same in every shard. */
  readonly names: readonly string[];
  /** The text of one metric: HELP, TYPE and the samples. */
  text(metric: string): Promise<string>;
}

/** What a market's gauges show now. */
interface Shown {
  readonly metered: MeteredMarket;
  readonly values: number[];
  state: MarketPhase | null;
}

/** An empty shard. `policy` is the shutdown policy, a label of `killswitch_market_info`. */
export function createMarketShard(policy: string): MarketShard {
  const registry = new Registry();
  const texts = new Map<string, Promise<string>>();
  const touch = (metric: string): void => {
    texts.delete(metric);
  };
  const gauges = declareMarketGauges(registry);
  const facts = declareMarketFacts(registry);
  const counters = declareMarketCounters(registry, touch);
  const markets = new Map<string, Shown>();

  const show = (market: string, shown: Shown, snapshot: MarketSnapshot): void => {
    for (const [index, { name, gauge, read }] of gauges.entries()) {
      const value = read(snapshot);
      if (shown.values[index] === value) continue;
      shown.values[index] = value;
      gauge.set({ market }, value);
      touch(name);
    }
    if (shown.state === snapshot.state) return;
    if (shown.state !== null) facts.state.set({ market, state: shown.state }, 0);
    facts.state.set({ market, state: snapshot.state }, 1);
    shown.state = snapshot.state;
    touch(MARKET_STATE_METRIC);
  };
  return {
    counters,
    size: () => markets.size,
    add(metered) {
      const { market } = metered;
      const values = gauges.map(({ initial }) => initial(metered));
      markets.set(market, { metered, values, state: null });
      facts.info.set(infoLabels(metered, policy), 1);
      for (const [index, { gauge }] of gauges.entries()) gauge.set({ market }, values[index] ?? 0);
      for (const state of MARKET_STATES) facts.state.set({ market, state }, 0);
      createCounterSeries(counters, market);
      texts.clear();
    },
    remove(market) {
      const shown = markets.get(market);
      if (shown === undefined) return;
      markets.delete(market);
      facts.info.remove(infoLabels(shown.metered, policy));
      for (const { gauge } of gauges) gauge.remove({ market });
      for (const state of MARKET_STATES) facts.state.remove({ market, state });
      removeCounterSeries(counters, market);
      texts.clear();
    },
    refresh(lookup) {
      for (const [market, shown] of markets) {
        const snapshot = lookup(market);
        if (snapshot !== undefined) show(market, shown, snapshot);
      }
    },
    names: registry.getMetricsAsArray().map((metric) => metric.name),
    text(metric) {
      let text = texts.get(metric);
      if (text === undefined) {
        text = registry.getSingleMetricAsString(metric);
        texts.set(metric, text);
      }
      return text;
    },
  };
}

function infoLabels(metered: MeteredMarket, policy: string) {
  return { market: metered.market, order_types: metered.types?.join('+') ?? 'all', policy };
}

function plainCounters(counters: MarketCounters) {
  const { attempts, renewals, overdue, refusals, alterations, deletes, deleteFailures } = counters;
  return [attempts, renewals, overdue, refusals, alterations, deletes, deleteFailures];
}

function createCounterSeries(counters: MarketCounters, market: string): void {
  for (const counter of plainCounters(counters)) counter.inc({ market }, 0);
  for (const reason of FAILURE_REASONS) counters.failures.inc({ market, reason }, 0);
  for (const certainty of CERTAINTIES) counters.lapses.inc({ market, certainty }, 0);
  for (const reason of SUSPENSIONS) counters.suspensions.inc({ market, reason }, 0);
}

function removeCounterSeries(counters: MarketCounters, market: string): void {
  for (const counter of plainCounters(counters)) counter.remove({ market });
  for (const reason of FAILURE_REASONS) counters.failures.remove({ market, reason });
  for (const certainty of CERTAINTIES) counters.lapses.remove({ market, certainty });
  for (const reason of SUSPENSIONS) counters.suspensions.remove({ market, reason });
}
