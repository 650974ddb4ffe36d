import { ASSUMED_ROUND_TRIP_MS, type Config, carriedPerSecond, warnOfPace } from '../config/config.ts';
import type { CoreSettings } from '../core/events.ts';
import type { Notice } from '../core/notice.ts';
import { describePromise, planCadence, seconds } from '../core/promise.ts';
import type { Snapshot } from '../core/view.ts';
import type { Log } from '../telemetry/log.ts';

export interface Introduced {
  readonly config: Config;
  readonly warnings: readonly string[];
  readonly version: string;
  readonly settings: CoreSettings;
  readonly bases: readonly string[];
  readonly addresses: readonly string[];
  /** The bot is a child of this process: it is ended first. */
  readonly ownsBot: boolean;
}

/** More markets than this are counted and not listed: their promises are on the status page. */
const NAMED_MARKETS = 100;

/** Says what this daemon guards and what it promises, before the first timer is armed. */
export function introduce(
  { config, warnings, version, settings, bases, addresses, ownsBot }: Introduced,
  { logger }: Log,
): void {
  const markets = settings.markets.length;
  const where = config.embeddedExchange ? `the embedded simulated exchange ${bases[0]}` : bases.join(', ');
  logger.info(
    { event: 'started', version, markets, bases },
    `killswitchd ${version} guards ${markets} ${markets === 1 ? 'market' : 'markets'} at ${where}.`,
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
  for (const [index, { market }] of settings.markets.slice(0, NAMED_MARKETS).entries()) {
    const promise = describePromise(settings, index, periodsMs[index] ?? 0);
    logger.info({ event: 'promise', market, promise }, promise.join(' '));
  }
  for (const address of addresses) {
    logger.info({ event: 'web-listening', address }, `Status page, health and metrics: ${address}`);
  }
  logger.info({ event: 'stop-means', policy: settings.shutdown.policy }, describeStop(settings, ownsBot));
}

function describeStop({ shutdown, liveness }: CoreSettings, ownsBot: boolean): string {
  const { policy, budgetMs } = shutdown;
  const does = {
    delete: 'deletes the timers',
    keep: 'leaves the timers to fire',
    handoff: 'renews the timers once more and leaves them to a successor',
  }[policy];
  const within = `within ${budgetMs / 1000} s`;
  if (!ownsBot) return `SIGTERM or Ctrl-C ${does}, ${within}.`;
  const dies = liveness.onStale === 'trip' ? 'cuts the timers to 5 s' : 'leaves the timers to fire';
  return (
    'SIGTERM or Ctrl-C asks the bot to end; its timers are renewed until it has. A second one kills it. ' +
    `Its end with exit code 0 ${does}, ${within}. Any other end ${dies}.`
  );
}

/**
 * Says the bounds again when everything is armed, and whenever the cadence follows another answer time: what was printed
 * at the start held for an assumed one. A warning is repeated only once it was gone in between.
 */
export function createPaceTold({ logger }: Pick<Log, 'logger'>, snapshot: () => Snapshot) {
  let warned: readonly string[] = [];
  return (notice: Notice, settings: CoreSettings): void => {
    if (notice.kind !== 'cadence' && notice.kind !== 'all-armed') return;
    const markets = snapshot().markets.filter(({ leaving }) => !leaving);
    const tightest = markets.reduce<Snapshot['markets'][number] | null>(
      (least, one) => (least === null || shareOf(one) < shareOf(least) ? one : least),
      null,
    );
    if (tightest === null) return;
    const { market, survivesMs, periodMs, timeoutMs } = tightest;
    const says = `From now on an outage of the exchange shorter than ${seconds(survivesMs)} cancels nothing of ${market} (renewed every ${seconds(Math.round(periodMs))}, timer of ${seconds(timeoutMs)}), the market with the least room for its timeout.`;
    logger.info({ event: 'promise', market, promise: [says] }, says);
    if (notice.kind !== 'cadence' || notice.answerMs === null) return;
    const warnings = warnOfPace(settings, Math.ceil(notice.answerMs));
    for (const warning of warnings) {
      if (!warned.includes(subjectOf(warning))) logger.warn({ event: 'config-warning' }, `${warning}.`);
    }
    warned = warnings.map(subjectOf);
  };
}

function shareOf({ survivesMs, timeoutMs }: Snapshot['markets'][number]): number {
  return survivesMs / timeoutMs;
}

/** The key that a warning begins with: its figures change. */
function subjectOf(warning: string): string {
  return warning.split(':', 1)[0] ?? '';
}
