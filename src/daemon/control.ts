import { type Config, ownerOf } from '../config/config.ts';
import type { Keeper } from '../keeper.ts';
import type { Beats } from '../liveness/beats.ts';
import type { Cancellations } from '../operator/cancellations.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import type { Cancel, Clock } from '../ports.ts';
import type { Log, LogLevel } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Operations } from '../telemetry/operations.ts';
import { botsOf } from './evidence.ts';
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

export interface LogLevels {
  readonly level: () => LogLevel;
  /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
  readonly set: (level: LogLevel, forMs: number | null) => void;
  /** The configured level has changed: it is in force unless an operator's is. */
  readonly configured: (level: LogLevel) => void;
  readonly stop: Cancel;
}

/** Which log level is in force: the configured one, or the one that an operator asked for. */
export function createLogLevels(
  clock: Clock,
  log: Log,
  operations: Operations,
  configured: LogLevel,
): LogLevels {
  let usual = configured;
  let isSet = false;
  let cancel: Cancel = () => {};
  function change(to: LogLevel, untilWallMs: number | null): void {
    if (log.level() !== to || untilWallMs !== null) operations.setLogLevel(to, untilWallMs);
  }
  return {
    level: () => log.level(),
    set(level, forMs) {
      cancel();
      isSet = true;
      change(level, forMs === null ? null : clock.now().wallMs + forMs);
      if (forMs === null) return;
      cancel = clock.after(forMs, () => {
        isSet = false;
        change(usual, null);
      });
    },
    configured(level) {
      usual = level;
      if (!isSet) change(level, null);
    },
    stop: () => cancel(),
  };
}
