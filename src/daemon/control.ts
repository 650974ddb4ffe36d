import { type Config, ownerOf } from '../config/config.ts';
import type { Keeper } from '../keeper.ts';
import type { Beats } from '../liveness/beats.ts';
import type { Cancellations } from '../operator/cancellations.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import type { Clock } from '../ports.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Operations } from '../telemetry/operations.ts';
import { botsOf } from './evidence.ts';
import type { LogLevels } from './log-levels.ts';
import type { Reloading } from './reloading.ts';

export interface Controlled {
  readonly clock: Clock;
  readonly version: string;
  /** The configuration in force. */
  readonly config: () => Config;
  /** The same with the markets that went to another shard and are still guarded here. */
  readonly guarded: () => Config;
  readonly keeper: Keeper;
  readonly beats: Beats;
  readonly metrics: Metrics;
  readonly operations: Operations;
  readonly cancellations: Cancellations;
  readonly reloading: Reloading;
  readonly levels: LogLevels;
  readonly status: ControlSources['status'];
}

/** What the control listener can bring about, tied to the parts that do it. */
export function createControlSources(parts: Controlled): ControlSources {
  const {
    clock,
    version,
    config,
    guarded,
    keeper,
    beats,
    metrics,
    operations,
    cancellations,
    reloading,
    levels,
    status,
  } = parts;
  const marketsOf = (bot: string) =>
    guarded()
      .markets.filter((market) => market.bot === bot)
      .map(({ market }) => market);
  return {
    clock,
    version,
    status,
    snapshot: keeper.snapshot,
    revision: keeper.revision,
    markets: () => guarded().markets.map(({ market }) => market),
    elsewhere(market) {
      const { fleet, shard } = config();
      if (!fleet.some((one) => one.market === market)) return null;
      return { index: ownerOf(market, shard.count), count: shard.count };
    },
    bots: () => botsOf(config().fleet),
    ttlMs: () => config().liveness.ttlSeconds * 1000,
    hear(bot, says, proof, agoMs) {
      const heard = beats.hear(bot, says, proof, agoMs);
      if (heard.counted) metrics.beatHeard(bot);
      else metrics.beatRefused(bot);
      return heard;
    },
    afterGoodbye: (bot, waitMs) => keeper.settled('goodbye', marketsOf(bot), waitMs),
    operate: keeper.operate,
    cancelled: () => cancellations.list().map(({ market }) => market),
    acknowledge(markets) {
      const seen = cancellations.acknowledge(markets);
      if (seen.length > 0) operations.acknowledged(seen);
      return seen;
    },
    reload: (waitMs) => reloading.reload('command', waitMs),
    logLevel: levels.level,
    setLogLevel: levels.set,
    onCommand: (command) => operations.commanded(command),
    onRefused: (reason) => operations.controlRefused(reason),
  };
}
