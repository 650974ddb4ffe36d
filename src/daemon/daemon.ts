import { readFileSync } from 'node:fs';
import { botsOf, type Config, ownerOf } from '../config/config.ts';
import type { Load, LoadedConfig } from '../config/load.ts';
import { type Environment, readSecrets, SECRET_VARIABLES } from '../config/secrets.ts';
import type { LeftArmed } from '../core/notice.ts';
import type { Keeper } from '../keeper.ts';
import { createBeats } from '../liveness/beats.ts';
import { type LookAtProcess, lastWord } from '../liveness/process.ts';
import { type ControlOptions, startControl } from '../operator/control.ts';
import type { ControlSources, ReloadReport } from '../operator/control-sources.ts';
import { isWell } from '../operator/health.ts';
import { startWeb, type WebOptions } from '../operator/web.ts';
import type { Clock } from '../ports.ts';
import { type Log, type Write } from '../telemetry/log.ts';
import type { ServiceManager } from '../telemetry/notify-socket.ts';
import { createSupervision } from '../telemetry/systemd.ts';
import { VERSION } from '../version.ts';
import { createBotEvidence } from './evidence.ts';
import { createGuard, createSecrets } from './guard.ts';
import { createFilesAnswer, createHandover, createReloading } from './reloading.ts';
import { createTelling, introduce, type Telling } from './telling.ts';

export interface DaemonOptions {
  readonly loaded: LoadedConfig;
  /** Reads it again, for a reload. */
  readonly load: Load;
  /** Where key and secret are read from. */
  readonly env: Environment;
  readonly clock: Clock;
  readonly nodeVersion: string;
  /** Where to report that the daemon is ready and lives; null where nobody supervises it. */
  readonly manager: ServiceManager | null;
  /** For `exec`: the bot is a child of this process, and ends before the timers do. */
  readonly ownsBot?: boolean;
  /** For `exec`: how the child is looked at. */
  readonly lookAtProcess: LookAtProcess;
  /** The log goes to a terminal. */
  readonly terminal?: boolean;
  /** Where the log goes; standard output unless given. */
  readonly write?: Write;
}

/** What `exec` tells of the bots' process. */
export interface Child {
  began(pid: number): void;
  /** Exit code 0 is a goodbye; another one, or a signal (null), a failure. */
  ended(code: number | null): void;
}

export interface Daemon {
  readonly log: Log;
  readonly keeper: Keeper;
  /** Where the status page is; empty where none is served. */
  readonly addresses: readonly string[];
  /** Where beats and commands are taken; empty where none are. */
  readonly controls: readonly string[];
  readonly child: Child;
  /** The configuration in force. */
  config(): Config;
  /** What `stop` resolves with, as soon as it is known; null before. */
  left(): readonly LeftArmed[] | null;
  /** Reads the configuration again, as SIGHUP asks. */
  reload(): Promise<ReloadReport>;
  /**
   * Ends the timers as the configured policy says, or leaves them with `keep`; then everything else in the reverse order
   * of its start. Once the timers have ended, the rest has 3 s: what hangs then is left behind.
   */
  stop(why: string, policy?: 'keep'): Promise<readonly LeftArmed[]>;
  /** Resets every connection to the exchange at once: no request that was given up may arrive after the end. */
  cut(): void;
}

/** How long the end waits for a slow reader of the log. */
const FLUSH_MS = 500;
/** How long everything but the timers has to end: the last word to a service manager takes 2 s at most. */
const CLOSE_MS = 3000;

/**
 * Builds every part and starts it: log, embedded exchange, exchange client, keeper, listeners, evidence. The listeners
 * are bound before the first timer is armed, so that a taken port arms nothing. Rejects where an address cannot be bound.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { clock, loaded, ownsBot = false } = options;
  const { config } = loaded;
  const secrets = createSecrets(config);
  const embedded = config.embeddedExchange ? await embed(clock, secrets.credentials()) : null;
  const bases = embedded === null ? config.exchange.baseUrls : [embedded.url];
  const telling = createTelling({ ...options, config, bases, secrets: secrets.all });
  const { log, metrics, recent, cancellations, notifying, operations } = telling;
  embedded?.narrate(log);
  const files = filesOf(options);
  const guard = createGuard({
    config,
    clock,
    bases,
    secrets,
    observers: telling.observers,
    log,
    filesAnswer: () => files.answer(config),
    rereadSecrets: files.rereadSecrets,
  });
  const { keeper } = guard;
  const service = createService(options, { files, telling, guard, hide: secrets.hide });
  const { supervision } = service;
  const closeExchange = () => guard.close().then(() => embedded?.close());
  const control = { ...controlOf(clock, keeper, telling, service), hide: secrets.hide };
  const lists = { recentEvents: recent.list, cancellations: cancellations.list };
  const pages = { ...lists, snapshot: keeper.snapshot, metrics, version: VERSION, clock };
  const listeners = await openListeners(config, pages, control, log).catch(async (error: unknown) => {
    await closeExchange();
    await log.flush(FLUSH_MS);
    throw error;
  });
  introduce(loaded, log, { bases, addresses: listeners.web, ownsBot });
  for (const address of listeners.control) operations.controlListening(address);
  if (supervision !== null) keeper.onTurn(supervision.turned);
  keeper.onWake(metrics.wokeUp);
  keeper.start();
  const stopService = service.start();
  let known: readonly LeftArmed[] | null = null;
  return {
    log,
    keeper,
    addresses: listeners.web,
    controls: listeners.control,
    child: service.child,
    config: service.config,
    left: () => known,
    reload: () => service.reloading.reload('signal', 0),
    async stop(why, policy) {
      service.reloading.stop();
      supervision?.stopping();
      service.handover.end();
      const left = await keeper.stop(policy ?? service.config().shutdown.policy, why);
      known = left;
      stopService();
      const close = async () => {
        const told = supervision?.stopped(left);
        await Promise.all([listeners.close(), closeExchange(), told, notifying.close()]);
        await log.flush(FLUSH_MS);
      };
      await Promise.race([close(), new Promise<void>((resolve) => void clock.after(CLOSE_MS, resolve))]);
      return left;
    },
    cut: () => void guard.close(),
  };
}

/** Loads the simulated exchange only where it is asked for: other starts do not wait for it. */
async function embed(clock: Clock, pair: { readonly key: string; readonly secret: string }) {
  const { startEmbedded } = await import('./embedded.ts');
  return startEmbedded(clock, pair);
}

/** The files that configuration and secrets are read from. */
function filesOf({ clock, loaded: { config }, env }: DaemonOptions) {
  const answer = createFilesAnswer(clock);
  const variables = SECRET_VARIABLES.filter((variable) => /_(FILE|SOURCE)$/.test(variable));
  const secretFiles = variables.map((variable) => env[variable]);
  return {
    /** Whether the file systems of what `load` reads answer, by the configuration in force: reading holds up the loop. */
    answer: ({ file, control, notify }: Config) => {
      const paths = [...secretFiles, control.tokenFile, notify.urlFile, notify.pingUrlFile, file];
      return answer(paths.filter((path) => path != null));
    },
    rereadSecrets: () => readSecrets(env, { demo: config.embeddedExchange }),
  };
}

interface Parts {
  readonly files: ReturnType<typeof filesOf>;
  readonly telling: Telling;
  readonly guard: ReturnType<typeof createGuard>;
  readonly hide: (text: string) => string;
}

/** What changes while the daemon runs: its configuration, its log level, and what it knows of the bots. */
function createService({ clock, loaded, load, lookAtProcess, manager }: DaemonOptions, parts: Parts) {
  const { files, telling, guard, hide } = parts;
  const { log } = telling;
  const { keeper } = guard;
  const supervision =
    manager === null ? null : createSupervision({ manager, clock, summary: keeper.summary, log });
  let inForce = loaded.config;
  let bots: readonly string[] = botsOf(inForce.fleet);
  const config = () => inForce;
  const handover = createHandover(clock, inForce, () => guard.follow(handover.config()));
  const guarded = () => handover.config().markets;
  const reloading = createReloading({
    clock,
    keeper,
    hide,
    supervision,
    filesAnswer: () => files.answer(inForce),
    load,
    operations: telling.operations,
    config,
    fileHash: loaded.fileHash,
    apply(next) {
      telling.follow(next);
      inForce = next;
      bots = botsOf(next.fleet);
      handover.follow(next);
      guard.takeOver(next);
      guard.follow(handover.config());
    },
  });
  const beats = createBeats({ mode: inForce.liveness.mode, bots: () => bots });
  const onProblem = telling.onEvidenceProblem;
  const evidence = createBotEvidence({ clock, config: handover.config, lookAtProcess, onProblem });
  // Where the child itself is the evidence, it is looked at; else its end is all that is taken from it.
  const child: Child =
    evidence !== null && 'began' in evidence
      ? evidence
      : {
          began() {},
          ended(code) {
            for (const bot of botsOf(guarded())) keeper.hear(bot, lastWord(code), 0);
          },
        };
  return {
    config,
    /** The markets in force with those that went to another shard and are still guarded here. */
    guarded,
    bots: () => bots,
    beats,
    supervision,
    reloading,
    handover,
    child,
    start() {
      telling.notifying.start(() => isWell(keeper.snapshot()));
      const stops = [beats.start(keeper.hear), evidence?.start(keeper.hear)];
      reloading.watch();
      return () => {
        for (const stop of stops) stop?.();
        telling.levels.stop();
      };
    },
  };
}

/** What the control listener can bring about, tied to the parts that do it. */
function controlOf(
  clock: Clock,
  keeper: Keeper,
  { cancellations, levels, metrics, operations }: Telling,
  { config, guarded, bots, beats, reloading }: ReturnType<typeof createService>,
) {
  const marketsOf = (bot: string) =>
    guarded()
      .filter((market) => market.bot === bot)
      .map(({ market }) => market);
  const sources: Omit<ControlSources, 'status'> = {
    clock,
    snapshot: keeper.snapshot,
    revision: keeper.revision,
    markets: () => guarded().map(({ market }) => market),
    elsewhere(market) {
      const { fleet, shard } = config();
      if (!fleet.some((one) => one.market === market)) return null;
      return { index: ownerOf(market, shard.count), count: shard.count };
    },
    bots,
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
    setLogLevel: (level, forMs) => levels.set(level, forMs),
    onCommand: (command) => operations.commanded(command),
    onRefused: (reason) => operations.controlRefused(reason),
  };
  /** The bearer token of the control listener; null where none is configured. */
  const token = () => config().control.token?.reveal() ?? null;
  return { sources, token };
}

/** Connections to the exchange, at their most while all are replaced, and what a daemon has open besides. */
const RESERVED = 192;
/** No listener uses more connections than this. */
const MOST_USED = 256;

/** How many files and connections the system lets this process open; null where it does not tell. */
function descriptorLimit(): number | null {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}

/** The connections that each listener may have, so that renewals never want for a descriptor; no bound where all is well. */
function connectionsPerListener(limit: number | null, { web, control, fleet }: Config): number | undefined {
  const listeners = web.listen.length + control.listen.length;
  if (limit === null || listeners === 0) return undefined;
  // A bot with a URL has a connection, and one that is being opened.
  const each = Math.floor((limit - RESERVED - 2 * botsOf(fleet).length) / listeners);
  return each >= MOST_USED ? undefined : Math.max(2, each);
}

/** Opens the read-only listeners, then those that change state. Rejects where one cannot be bound; then none is open. */
async function openListeners(
  config: Config,
  pages: Omit<WebOptions, 'listen'>,
  commands: ReturnType<typeof controlOf> & Pick<ControlOptions, 'hide'>,
  { logger }: Log,
) {
  const limit = descriptorLimit();
  const most = connectionsPerListener(limit, config);
  if (most !== undefined) {
    logger.warn(
      { event: 'few-descriptors', limit, most },
      `Only ${limit} files and connections may be open (ulimit -n): each listener takes at most ${most} connections, so that renewals have theirs.`,
    );
  }
  const capped = most === undefined ? {} : { mostConnections: most };
  const web = await startWeb({ ...pages, ...capped, listen: config.web.listen });
  const { listen, access } = config.control;
  const { status } = web;
  const sources = { ...commands.sources, status };
  const options = { ...capped, ...commands, listen, access, sources };
  const control = await startControl(options).catch(async (error: unknown) => {
    await web.close();
    throw error;
  });
  return {
    /** Where the status page is. */
    web: web.addresses,
    /** Where beats and commands are taken. */
    control: control.addresses,
    async close(): Promise<void> {
      await control.close();
      await web.close();
    },
  };
}
