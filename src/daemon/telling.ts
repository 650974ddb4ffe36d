import type { Config } from '../config/config.ts';
import type { OnProblem } from '../liveness/rounds.ts';
import { type Cancellations, createCancellations } from '../operator/cancellations.ts';
import { REFUSALS } from '../operator/control-sources.ts';
import type { Clock, Observer } from '../ports.ts';
import {
  createLog,
  createRecentEvents,
  type Log,
  type LogLevel,
  type RecentEvents,
  tellNotices,
} from '../telemetry/log.ts';
import { createMetrics, type Metered, type Metrics } from '../telemetry/metrics.ts';
import { createOperations, type Operations } from '../telemetry/operations.ts';
import type { Write } from '../telemetry/sink.ts';
import { REVISION } from '../version.ts';
import { botsOf } from './evidence.ts';
import { hashOf } from './reloading.ts';

/** Everything by which the daemon tells the world what happens. */
export interface Telling {
  readonly metrics: Metrics;
  readonly recent: RecentEvents;
  readonly cancellations: Cancellations;
  readonly operations: Operations;
  readonly onEvidenceProblem: OnProblem;
  readonly observe: Observer;
}

/** The log counts its own lines, in metrics that are made after it. */
export interface CountedLog {
  readonly log: Log;
  readonly countIn: (metrics: Metrics) => void;
}

export function createCountedLog(
  {
    config,
    clock,
    terminal = false,
    write,
  }: {
    readonly config: Config;
    readonly clock: Clock;
    readonly terminal?: boolean;
    readonly write?: Write;
  },
  secrets: () => readonly string[],
): CountedLog {
  let metrics: Metrics | null = null;
  const log = createLog({
    level: levelOf(config),
    format: config.log.format,
    terminal,
    clock,
    onLine: (level) => metrics?.countLogLine(level),
    onDrop: () => metrics?.countDroppedLogLine(),
    secrets,
    ...(write === undefined ? {} : { write }),
  });
  return {
    log,
    countIn(counting) {
      metrics = counting;
    },
  };
}

export interface TellingOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly version: string;
  readonly nodeVersion: string;
  readonly bases: readonly string[];
  readonly counted: CountedLog;
  /** Whoever else is told. */
  readonly tellAlso: Observer;
}

export function createTelling(options: TellingOptions): Telling {
  const { config, clock, version, nodeVersion, bases, counted } = options;
  const { log } = counted;
  const metrics = createMetrics({
    version,
    revision: REVISION,
    nodeVersion,
    clock,
    bases,
    controlReasons: REFUSALS,
    configHash: hashOf(config),
    ...meteredOf(config),
  });
  counted.countIn(metrics);
  const recent = createRecentEvents();
  const cancellations = createCancellations();
  const observers = [
    metrics.observe,
    cancellations.observe,
    tellNotices(log.logger, recent, { bases }),
    options.tellAlso,
  ];
  return {
    metrics,
    recent,
    cancellations,
    operations: createOperations({ log, metrics, recent, clock }),
    onEvidenceProblem(bot, problem) {
      if (problem === null) {
        log.logger.info({ event: 'evidence-found', bot }, `Bot ${bot}: its signs of life can be seen again.`);
      } else {
        log.logger.warn({ event: 'evidence-problem', bot }, `Bot ${bot}: no sign of life, ${problem}.`);
      }
    },
    observe: (notice, now) => {
      for (const observe of observers) observe(notice, now);
    },
  };
}

/** What the metrics show of the configuration and no snapshot has. */
export function meteredOf(config: Config): Metered {
  return {
    bots: botsOf(config.markets),
    shard: { ...config.shard, markets: config.markets.length, fleet: config.fleet.length },
  };
}

/** `trace` shows no more than `debug`. */
export function levelOf({ log: { level } }: Config): LogLevel {
  return level === 'trace' ? 'debug' : level;
}
