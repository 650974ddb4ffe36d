import {
  ASSUMED_ROUND_TRIP_MS,
  type Config,
  cadenceAt,
  describePace,
  hashOf,
  toCoreSettings,
  WHAT_A_STOP_DOES,
  warnOfPace,
} from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { CoreSettings } from '../core/events.ts';
import { describePromise } from '../core/promise.ts';
import { createCancellations } from '../operator/cancellations.ts';
import { REFUSALS, type Refusal } from '../operator/control-sources.ts';
import type { Cancel, Clock, Commanded, EventLevel, LogLevel, Observer } from '../ports.ts';
import { boundLists, momentText } from '../telemetry/events.ts';
import { createLog, type Log, type LogOptions, tellNotices } from '../telemetry/log.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { createNotifying } from '../telemetry/notifications.ts';
import { counted, listed } from '../util/text.ts';
import { REVISION, VERSION } from '../version.ts';
import { createPoster } from './url-requests.ts';

export type Telemetry = ReturnType<typeof createTelemetry>;

interface TelemetryOptions extends Pick<LogOptions, 'clock' | 'terminal' | 'write' | 'secrets'> {
  readonly config: Config;
  readonly nodeVersion: string;
  readonly bases: readonly string[];
}

export function createTelemetry(options: TelemetryOptions) {
  const { config, clock, bases } = options;
  const metrics = createMetrics({
    build: { version: VERSION, revision: REVISION, node_version: options.nodeVersion },
    clock,
    bases,
    controlReasons: REFUSALS,
    configHash: hashOf(config),
    shard: shardOf(config),
  });
  const log = createLog({
    ...options,
    level: levelOf(config),
    format: config.log.format,
    onLine: (level) => metrics.logMessages.inc({ level }),
    onDrop: () => metrics.logDropped.inc(),
  });
  const cancellations = createCancellations();
  const operations = createOperations(log, metrics, clock);
  const levels = createLogLevels(log, clock);
  const notifying = createNotifying({
    clock,
    bases,
    notify: config.notify,
    log,
    messages: createPoster(clock),
    pings: createPoster(clock),
    onFailure: (what) => metrics.notifyFailures.inc({ what }),
  });
  const tell = tellNotices(log, bases);
  const observers: readonly Observer[] = [metrics.observe, cancellations.observe, tell, notifying.observe];
  return {
    log,
    metrics,
    cancellations,
    operations,
    levels,
    notifying,
    observers,
    follow(next: Config): void {
      metrics.reconfigure(shardOf(next));
      notifying.follow(next.notify);
      levels.configured(levelOf(next));
    },
    onEvidenceProblem: (bot: string, problem: string | null): void => {
      const [event, level, msg] =
        problem === null
          ? (['evidence-found', 'info', `Bot ${bot}: its signs of life can be seen again.`] as const)
          : (['evidence-problem', 'warn', `Bot ${bot}: no sign of life, ${problem}.`] as const);
      const line = { level, event, market: null, msg, fields: { bot } };
      log.logger[log.floods.isCollected(line, clock.now()) ? 'debug' : level]({ event, bot }, msg);
    },
  };
}

function shardOf({ shard, markets, fleet }: Config) {
  return { ...shard, markets: markets.length, fleet: fleet.length };
}

/** `trace` shows no more than `debug`. */
function levelOf({ log: { level } }: Config): LogLevel {
  return level === 'trace' ? 'debug' : level;
}

/** Which log level is in force: the configured one, or the one that an operator asked for. */
export function createLogLevels({ logger, tell }: Log, clock: Clock) {
  let usual = logger.level;
  let isSet = false;
  let cancel: Cancel = () => {};
  /** Says so, in whichever of the two levels shows it. */
  function change(to: LogLevel, untilWallMs: number | null = null): void {
    const from = logger.level;
    if (from === to && untilWallMs === null) return;
    const until =
      untilWallMs === null ? 'from now on' : `until ${momentText(untilWallMs, clock.now().wallMs)}`;
    const msg = `The log level is ${to} ${until}; it was ${from}.`;
    if (!logger.isLevelEnabled('info')) logger.level = to;
    tell({ level: 'info', event: 'log-level-changed', market: null, msg, fields: { from, to, untilWallMs } });
    logger.level = to;
  }
  return {
    level: () => logger.level,
    /** For `forMs`, after which the configured level is back; null for as long as the daemon runs. */
    set(level: LogLevel, forMs: number | null): void {
      cancel();
      isSet = true;
      if (forMs === null) return change(level);
      change(level, clock.now().wallMs + forMs);
      cancel = clock.after(forMs, () => {
        isSet = false;
        change(usual);
      });
    },
    /** The configured level has changed: it is in force unless an operator's is. */
    configured(level: LogLevel): void {
      usual = level;
      if (!isSet) change(level);
    },
    stop: (): void => cancel(),
  };
}

/** More markets than this are counted and not listed: their promises are on the status page. */
const NAMED_MARKETS = 100;

/** Says what this daemon guards and promises before the first timer is armed. `addresses`: those of the status page. */
export function introduce(
  { config, warnings }: LoadedConfig,
  { logger }: Log,
  bases: readonly string[],
  addresses: readonly string[],
  ownsBot: boolean,
): void {
  const say = (event: string, fields: object, msg: string) => logger.info({ event, ...fields }, msg);
  const warn = (warning: string) => logger.warn({ event: 'config-warning' }, `${warning}.`);
  const settings = toCoreSettings(config, bases);
  const markets = settings.markets.length;
  const where = config.embeddedExchange ? `the embedded simulated exchange ${bases[0]}` : bases.join(', ');
  const guards = `killswitchd ${VERSION} guards ${counted(markets, 'market')} at ${where}.`;
  say('started', { version: VERSION, markets, bases }, guards);
  const { index: shard, count: shards } = config.shard;
  const fleet = config.fleet.length;
  const part = `This is shard ${shard} of ${shards}, counted from 0: it has ${markets} of ${fleet} markets.`;
  if (shards > 1) say('shard', { shard, shards, markets, fleet }, part);
  warnings.forEach(warn);
  const { periodsMs, overload } = cadenceAt(settings, null);
  if (settings.nonce === 'increasing' && markets > 1) {
    const holds = describePace(ASSUMED_ROUND_TRIP_MS);
    say('promise', { promise: [holds] }, holds);
    warnOfPace(settings, null).forEach(warn);
  }
  for (const [index, market] of settings.markets.slice(0, NAMED_MARKETS).entries()) {
    const promise = describePromise(settings, market, (periodsMs[index] ?? 0) * overload);
    say('promise', { market: market.market, promise }, promise.join(' '));
  }
  for (const address of addresses)
    say('web-listening', { address }, `Status page, health and metrics: ${address}`);
  say('stop-means', { policy: settings.shutdown.policy }, describeStop(settings, ownsBot));
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

const REFUSALS_QUIET_MS = 60_000;
/** More mistakes than this are counted in the sentence; the line's fields have the first twenty. */
const SAID_PROBLEMS = 5;

/** What made the daemon read its configuration again; `poll` is a look that found it changed. */
const TRIGGER = { signal: 'SIGHUP', command: 'an operator asked', poll: 'it has changed' } as const;
export type ReloadTrigger = keyof typeof TRIGGER;

/** Tells log, metrics and recent events of commands, reloads and refusals, which are no notices of the core. */
export function createOperations(log: Log, metrics: Metrics, clock: Clock) {
  let rejected: string | null = null;
  /** When a reason was said, and how often more since then. */
  const refusals = new Map<string, { readonly saidMs: number; more: number }>();
  const say = (event: string, given: object, msg: string, level: EventLevel = 'info'): void => {
    log.tell({ level, event, market: null, msg, fields: boundLists(given) });
  };
  const readWell = (event: string, what: string) => (trigger: ReloadTrigger, hash: string) => {
    rejected = null;
    metrics.reloadSucceeded(hash);
    say(event, { trigger, hash }, `The configuration was read again (${TRIGGER[trigger]})${what}`);
  };
  return {
    /** The new configuration is in force. `hash`: its digest in hexadecimal digits. */
    reloadApplied: readWell('reload-applied', ', and the new one is in force.'),
    reloadUnchanged: readWell('reload-unchanged', ': it is the one that is in force.'),
    reloadRejected(trigger: ReloadTrigger, problems: readonly string[]): void {
      metrics.reloadFailed();
      const mistakes = problems.join('\n');
      const again = trigger === 'poll' && mistakes === rejected;
      rejected = mistakes;
      const text = describeRejection(trigger, problems);
      say('reload-rejected', { trigger, problems, again }, text, again ? 'debug' : 'error');
    },
    acknowledged(markets: readonly string[]): void {
      const text = `An operator has seen that orders were cancelled: ${listed(markets)}.`;
      say('cancellation-acknowledged', { markets }, text);
    },
    controlListening: (address: string) =>
      say('control-listening', { address }, `Beats and commands: ${address}`),
    commanded: (command: Commanded) => say('operator-command', { ...command }, describeCommand(command)),
    /** Counts every refusal; the first of a reason in a minute is a line. */
    controlRefused(reason: Refusal): void {
      metrics.controlRefused.inc({ reason });
      const { monoMs: saidMs } = clock.now();
      const before = refusals.get(reason);
      if (before !== undefined && saidMs - before.saidMs < REFUSALS_QUIET_MS) {
        before.more += 1;
        return;
      }
      refusals.set(reason, { saidMs, more: 0 });
      const more = before?.more ?? 0;
      const others = more > 0 ? `, and ${more} more since the last line about it` : '';
      const text = `A request to the control listener was refused (${reason})${others}.`;
      say('control-refused', { reason, more }, text, 'warn');
    },
  };
}

function describeCommand({ command, markets, reason, sender, via }: Commanded): string {
  const isForMarkets = command !== 'reload' && command !== 'log-level';
  const which = markets === null ? ', all markets' : ` ${listed(markets)}`;
  const why = reason === null ? 'No reason was given.' : `Reason: ${JSON.stringify(reason)}.`;
  const who =
    sender === null ? 'The sender does not say who it is' : `Sender: ${JSON.stringify(sender)}, as it says`;
  return `An operator's command: ${command}${isForMarkets ? which : ''}. ${why} ${who}; over ${via}.`;
}

function describeRejection(trigger: ReloadTrigger, problems: readonly string[]): string {
  const { length } = problems;
  const numbered = problems.slice(0, SAID_PROBLEMS).map((problem, index) => `(${index + 1}) ${problem}`);
  const others = length > SAID_PROBLEMS ? ` and ${length - SAID_PROBLEMS} more` : '';
  const said =
    length === 1 ? `1 mistake: ${problems[0]}` : `${length} mistakes: ${numbered.join(' ')}${others}`;
  return `THE NEW CONFIGURATION IS REJECTED (${TRIGGER[trigger]}): the old one stays in force, nothing has changed. ${said}`;
}
