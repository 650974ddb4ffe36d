import { type Config, toCoreSettings } from '../config/config.ts';
import type { Loaded } from '../config/load.ts';
import type { SecretsRead } from '../config/secrets.ts';
import type { LeftArmed } from '../core/notice.ts';
import type { Keeper } from '../keeper.ts';
import { createBeats } from '../liveness/beats.ts';
import { type LookAtProcess, lastWord } from '../liveness/process.ts';
import type { ReloadReport } from '../operator/control-sources.ts';
import type { Clock, Evidence } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import type { NotifyWhat } from '../telemetry/notifications.ts';
import type { ServiceManager } from '../telemetry/notify-socket.ts';
import type { Write } from '../telemetry/sink.ts';
import { createSupervision, type Supervision } from '../telemetry/systemd.ts';
import { createControlSources, createLogLevels } from './control.ts';
import { createSecrets, type SecretsInForce } from './credentials.ts';
import type { startEmbedded } from './embedded.ts';
import { botsOf, createBotEvidence } from './evidence.ts';
import { createGuard } from './guard.ts';
import { createHandover } from './handover.ts';
import { introduce } from './introduce.ts';
import { openListeners } from './listeners.ts';
import { createNotifying, type Notifying } from './notifying.ts';
import { createReloading } from './reloading.ts';
import { createCountedLog, createTelling, levelOf, meteredOf } from './telling.ts';

export interface DaemonOptions {
  readonly config: Config;
  readonly warnings: readonly string[];
  /** Of the bytes that the configuration was read from; null without a file. */
  readonly fileHash: string | null;
  readonly clock: Clock;
  readonly version: string;
  readonly nodeVersion: string;
  /** Who is told that the daemon is ready and lives; null where nobody supervises it. */
  readonly manager: ServiceManager | null;
  /** Reads the whole configuration again, for a reload. */
  readonly load: () => Loaded;
  /** Whether the file systems of what `load` reads answer, by the configuration in force: reading holds up the loop. */
  readonly filesAnswer: (inForce: Config) => Promise<boolean>;
  /** Reads the secret files again; asked whenever the exchange refuses the key. */
  readonly rereadSecrets: () => SecretsRead;
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
  const { clock, version, config } = options;
  const secrets = createSecrets(config);
  const counted = createCountedLog(options, secrets.all);
  const { log } = counted;
  const embedded = config.embeddedExchange ? await embed(clock, secrets.credentials(), log) : null;
  const bases = embedded === null ? config.exchange.baseUrls : [embedded.url];
  const onFailure = (what: NotifyWhat) => telling.metrics.notifyFailed(what);
  const notifying = createNotifying({ clock, bases, notify: config.notify, log, onFailure });
  const telling = createTelling({ ...options, bases, counted, tellAlso: notifying.observe });
  const filesAnswer = () => options.filesAnswer(config);
  const guard = createGuard({ ...options, filesAnswer, bases, secrets, telling, log });
  const { keeper } = guard;
  const supervision = createSupervision({ ...options, summary: keeper.summary, log });
  const service = createService(options, { log, telling, guard, secrets, supervision, notifying });
  const closeExchange = async () => {
    await guard.close();
    await embedded?.close();
  };
  const { metrics, recent, cancellations } = telling;
  const lists = { recentEvents: recent.list, cancellations: cancellations.list, metrics, version, clock };
  const listeners = await openListeners(
    config,
    { snapshot: keeper.snapshot, ...lists },
    secrets,
    (status) => createControlSources({ ...service, clock, version, keeper, ...telling, status }),
    (limit, most) => warnOfDescriptors(log, limit, most),
  ).catch(async (error: unknown) => {
    await closeExchange();
    await log.flush(FLUSH_MS);
    throw error;
  });
  const settings = toCoreSettings(config, bases);
  introduce(
    { ...options, settings, bases, addresses: listeners.web, ownsBot: options.ownsBot ?? false },
    log,
  );
  for (const address of listeners.control) telling.operations.controlListening(address);
  keeper.onTurn(supervision.turned);
  keeper.onWake(telling.metrics.wokeUp);
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
      supervision.stopping();
      service.handover.end();
      const left = await keeper.stop(policy ?? service.config().shutdown.policy, why);
      known = left;
      stopService();
      const close = async () => {
        await Promise.all([listeners.close(), closeExchange(), supervision.stopped(left), notifying.close()]);
        await log.flush(FLUSH_MS);
      };
      await Promise.race([close(), new Promise<void>((resolve) => void clock.after(CLOSE_MS, resolve))]);
      return left;
    },
    cut: () => void guard.close(),
  };
}

function warnOfDescriptors({ logger }: Log, limit: number | null, most: number): void {
  logger.warn(
    { event: 'few-descriptors', limit, most },
    `Only ${limit} files and connections may be open (ulimit -n): each listener takes at most ${most} connections, so that renewals have theirs.`,
  );
}

/** Loaded where it is asked for: nobody who trades waits for the simulated exchange. */
async function embed(...given: Parameters<typeof startEmbedded>): ReturnType<typeof startEmbedded> {
  const { startEmbedded } = await import('./embedded.ts');
  return startEmbedded(...given);
}

interface Parts {
  readonly log: Log;
  readonly telling: ReturnType<typeof createTelling>;
  readonly guard: ReturnType<typeof createGuard>;
  readonly secrets: SecretsInForce;
  readonly supervision: Supervision;
  readonly notifying: Notifying;
}

/** What changes while the daemon runs: its configuration, its log level, and what it knows of the bots. */
function createService(options: DaemonOptions, parts: Parts) {
  const { log, telling, guard, secrets, supervision, notifying } = parts;
  const { clock } = options;
  const { keeper } = guard;
  let inForce = options.config;
  const config = () => inForce;
  const handover = createHandover(clock, inForce, () => guard.follow(handover.config()));
  const levels = createLogLevels(clock, log, telling.operations, levelOf(inForce));
  const reloading = createReloading({
    clock,
    operations: telling.operations,
    supervision,
    config,
    fileHash: options.fileHash,
    filesAnswer: () => options.filesAnswer(inForce),
    load: options.load,
    hide: secrets.hide,
    async apply(next) {
      telling.metrics.reconfigure(meteredOf(next));
      inForce = next;
      notifying.follow(next.notify);
      handover.follow(next);
      levels.configured(levelOf(next));
      guard.takeOver(next);
      guard.follow(handover.config());
    },
    settled: async ({ armed, gone }, waitMs) =>
      (
        await Promise.all([keeper.settled('arm', armed, waitMs), keeper.settled('remove', gone, waitMs)])
      ).flat(),
  });
  const beats = createBeats({ mode: inForce.liveness.mode, bots: () => botsOf(inForce.fleet) });
  const { lookAtProcess } = options;
  const evidence = createBotEvidence({
    clock,
    config: handover.config,
    lookAtProcess,
    onProblem: telling.onEvidenceProblem,
  });
  return {
    config,
    guarded: handover.config,
    levels,
    reloading,
    handover,
    beats,
    child: childOf(evidence, (word) => {
      for (const bot of botsOf(handover.config().markets)) keeper.hear(bot, word, 0);
    }),
    start() {
      notifying.start(() => keeper.snapshot().ready);
      const stops = [beats.start(keeper.hear), evidence?.start(keeper.hear), reloading.watch()];
      return () => {
        for (const stop of stops) stop?.();
        levels.stop();
      };
    },
  };
}

/** Where the child itself is the evidence, it is looked at; else its end is all that is taken from it. */
function childOf(evidence: Evidence | Child | null, say: (word: ReturnType<typeof lastWord>) => void): Child {
  if (evidence !== null && 'began' in evidence) return evidence;
  return { began: () => {}, ended: (code) => say(lastWord(code)) };
}
