import {
  ASSUMED_ROUND_TRIP_MS,
  botsOf,
  type Config,
  carriedPerSecond,
  toCoreSettings,
  WHAT_A_STOP_DOES,
  warnOfPace,
} from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { CoreSettings } from '../core/events.ts';
import { describePromise, planCadence } from '../core/promise.ts';
import { createCancellations } from '../operator/cancellations.ts';
import { REFUSALS } from '../operator/control-sources.ts';
import type { Cancel, Clock, LogLevel, Observer } from '../ports.ts';
import { createLog, createRecentEvents, type Log, type LogOptions, tellNotices } from '../telemetry/log.ts';
import { createMetrics, type Metered } from '../telemetry/metrics.ts';
import { createNotifying } from '../telemetry/notifications.ts';
import { createOperations, type Operations } from '../telemetry/operations.ts';
import { REVISION, VERSION } from '../version.ts';
import { createPoster } from './asking.ts';
import { hashOf } from './reloading.ts';

/** Everything by which the daemon tells the world what happens. */
export type Telling = ReturnType<typeof createTelling>;

export function createTelling(
  options: Pick<LogOptions, 'clock' | 'terminal' | 'write' | 'secrets'> & {
    readonly config: Config;
    readonly nodeVersion: string;
    readonly bases: readonly string[];
  },
) {
  const { config, clock, nodeVersion, bases } = options;
  const metrics = createMetrics({
    version: VERSION,
    revision: REVISION,
    nodeVersion,
    clock,
    bases,
    controlReasons: REFUSALS,
    configHash: hashOf(config),
    ...meteredOf(config),
  });
  const log = createLog({
    ...options,
    level: levelOf(config),
    format: config.log.format,
    onLine: metrics.countLogLine,
    onDrop: metrics.countDroppedLogLine,
  });
  const recent = createRecentEvents();
  const cancellations = createCancellations();
  const operations = createOperations({ log, metrics, recent, clock });
  const levels = createLogLevels(clock, log, operations, levelOf(config));
  const notifying = createNotifying({
    clock,
    bases,
    notify: config.notify,
    log,
    messages: createPoster(clock),
    pings: createPoster(clock),
    onFailure: (what) => metrics.notifyFailed(what),
  });
  const observers: readonly Observer[] = [
    metrics.observe,
    cancellations.observe,
    tellNotices(log.logger, recent, { bases }),
    notifying.observe,
  ];
  return {
    log,
    metrics,
    recent,
    cancellations,
    operations,
    levels,
    notifying,
    observers,
    /** Puts a new configuration in force. */
    follow(next: Config): void {
      metrics.reconfigure(meteredOf(next));
      notifying.follow(next.notify);
      levels.configured(levelOf(next));
    },
    onEvidenceProblem: (bot: string, problem: string | null): void => {
      if (problem === null) {
        log.logger.info({ event: 'evidence-found', bot }, `Bot ${bot}: its signs of life can be seen again.`);
      } else {
        log.logger.warn({ event: 'evidence-problem', bot }, `Bot ${bot}: no sign of life, ${problem}.`);
      }
    },
  };
}

/** What the metrics show of the configuration and no snapshot has. */
function meteredOf(config: Config): Metered {
  return {
    bots: botsOf(config.markets),
    shard: { ...config.shard, markets: config.markets.length, fleet: config.fleet.length },
  };
}

/** `trace` shows no more than `debug`. */
function levelOf({ log: { level } }: Config): LogLevel {
  return level === 'trace' ? 'debug' : level;
}

/** Which log level is in force: the configured one, or the one that an operator asked for. */
function createLogLevels(clock: Clock, log: Log, operations: Operations, configured: LogLevel) {
  let usual = configured;
  let isSet = false;
  let cancel: Cancel = () => {};
  function change(to: LogLevel, untilWallMs: number | null): void {
    if (log.level() !== to || untilWallMs !== null) operations.setLogLevel(to, untilWallMs);
  }
  return {
    level: () => log.level(),
    /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
    set(level: LogLevel, forMs: number | null): void {
      cancel();
      isSet = true;
      change(level, forMs === null ? null : clock.now().wallMs + forMs);
      if (forMs === null) return;
      cancel = clock.after(forMs, () => {
        isSet = false;
        change(usual, null);
      });
    },
    /** The configured level has changed: it is in force unless an operator's is. */
    configured(level: LogLevel): void {
      usual = level;
      if (!isSet) change(level, null);
    },
    stop: (): void => cancel(),
  };
}

/** More markets than this are counted and not listed: their promises are on the status page. */
const NAMED_MARKETS = 100;

interface Introduced {
  readonly bases: readonly string[];
  /** Where the status page is. */
  readonly addresses: readonly string[];
  /** The bot is a child of this process: it is ended first. */
  readonly ownsBot: boolean;
}

/** Says what this daemon guards and what it promises, before the first timer is armed. */
export function introduce(
  { config, warnings }: LoadedConfig,
  { logger }: Log,
  { bases, addresses, ownsBot }: Introduced,
): void {
  const settings = toCoreSettings(config, bases);
  const markets = settings.markets.length;
  const where = config.embeddedExchange ? `the embedded simulated exchange ${bases[0]}` : bases.join(', ');
  logger.info(
    { event: 'started', version: VERSION, markets, bases },
    `killswitchd ${VERSION} guards ${markets} ${markets === 1 ? 'market' : 'markets'} at ${where}.`,
  );
  const { index, count } = config.shard;
  if (count > 1) {
    logger.info(
      { event: 'shard', shard: index, shards: count, markets, fleet: config.fleet.length },
      `This is shard ${index} of ${count}, counted from 0: it has ${markets} of ${config.fleet.length} markets.`,
    );
  }
  for (const warning of warnings) logger.warn({ event: 'config-warning' }, `${warning}.`);
  const { periodsMs } = planCadence(settings.markets, carriedPerSecond(settings, null));
  if (settings.nonce === 'increasing' && markets > 1) {
    const holds = `Requests go out one after the other, because nonces are increasing. The times below hold for a round trip of ${ASSUMED_ROUND_TRIP_MS} ms.`;
    logger.info({ event: 'promise', promise: [holds] }, holds);
    for (const warning of warnOfPace(settings, null)) logger.warn({ event: 'config-warning' }, `${warning}.`);
  }
  for (const [index, market] of settings.markets.slice(0, NAMED_MARKETS).entries()) {
    const promise = describePromise(settings, market, periodsMs[index] ?? 0);
    logger.info({ event: 'promise', market: market.market, promise }, promise.join(' '));
  }
  for (const address of addresses) {
    logger.info({ event: 'web-listening', address }, `Status page, health and metrics: ${address}`);
  }
  logger.info({ event: 'stop-means', policy: settings.shutdown.policy }, describeStop(settings, ownsBot));
}

function describeStop({ shutdown, liveness }: CoreSettings, ownsBot: boolean): string {
  const { policy, budgetMs } = shutdown;
  const does = WHAT_A_STOP_DOES[policy];
  const within = `within ${budgetMs / 1000} s`;
  if (!ownsBot) return `SIGTERM or Ctrl-C ${does}, ${within}.`;
  const dies = liveness.onStale === 'trip' ? 'cuts the timers to 5 s' : 'leaves the timers to fire';
  return (
    'SIGTERM or Ctrl-C asks the bot to end; its timers are renewed until it has. A second one kills it. ' +
    `Its end with exit code 0 ${does}, ${within}. Any other end ${dies}.`
  );
}
