import type { Config } from '../config/config.ts';
import { toCoreSettings } from '../config/core-settings.ts';
import type { Loaded } from '../config/load.ts';
import type { SecretsRead } from '../config/secrets.ts';
import type { LeftArmed } from '../core/notice.ts';
import { createExchange } from '../exchange/exchange.ts';
import { createKeeper, type Keeper } from '../keeper.ts';
import { createBeats } from '../liveness/beats.ts';
import { type LookAtProcess, lastWord } from '../liveness/process.ts';
import { startControl } from '../operator/control.ts';
import type { ReloadReport } from '../operator/control-sources.ts';
import { startWeb } from '../operator/web.ts';
import type { Clock } from '../ports.ts';
import type { Log } from '../telemetry/log.ts';
import { createControlSources } from './control.ts';
import { createSecrets } from './credentials.ts';
import { startEmbedded } from './embedded.ts';
import { botsOf, createBotEvidence } from './evidence.ts';
import { introduce } from './introduce.ts';
import { createLogLevels } from './log-levels.ts';
import { createReloading } from './reloading.ts';
import { createCountedLog, createTelling, levelOf, meteredOf } from './telling.ts';

export interface DaemonOptions {
  readonly config: Config;
  readonly warnings: readonly string[];
  readonly clock: Clock;
  readonly version: string;
  readonly nodeVersion: string;
  /** Reads the whole configuration again, for a reload. */
  readonly load: () => Loaded;
  /** Reads the secret files again; asked whenever the exchange refuses the key. */
  readonly rereadSecrets: () => SecretsRead;
  /** For `exec`: how the child is looked at. */
  readonly lookAtProcess: LookAtProcess;
}

export interface Daemon {
  readonly log: Log;
  readonly keeper: Keeper;
  /** Where the status page is; empty where none is served. */
  readonly addresses: readonly string[];
  /** Where beats and commands are taken, as `control.listen` writes it; empty where none are. */
  readonly controls: readonly string[];
  /** For `exec`: the bots' process was started, and it has ended. */
  readonly child: { began(pid: number): void; ended(code: number | null): void };
  /** Reads the configuration again, as SIGHUP asks. */
  reload(): Promise<ReloadReport>;
  /** Ends the timers as the policy says, then everything else in the reverse order of its start. */
  stop(why: string): Promise<readonly LeftArmed[]>;
}

/** How long the end waits for a slow reader of the log. */
const FLUSH_MS = 500;

/**
 * Builds every part and starts it: log, embedded exchange, exchange client, keeper, web, control, evidence. The
 * listeners are bound before the first timer is armed, so that a taken port arms nothing. Rejects where an address
 * cannot be bound.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { clock, version } = options;
  let { config } = options;
  const secrets = createSecrets(config);
  const counted = createCountedLog(config, clock, secrets.all);
  const { log } = counted;
  const embedded = config.embeddedExchange ? await startEmbedded(clock, secrets.credentials(), log) : null;
  const bases = embedded === null ? config.exchange.baseUrls : [embedded.url];
  const settings = toCoreSettings(config, bases);
  const telling = createTelling({ ...options, bases, counted });
  const { metrics, recent, operations } = telling;
  const exchange = createExchange({
    bases,
    credentials: secrets.credentials,
    nonce: settings.nonce,
    clock,
    budget: settings.budget,
    connections: settings.connections,
    userAgent: `killswitchd/${version}`,
  });
  const takeOver = (found: Config['secrets']) => {
    if (secrets.takeOver(found)) keeper.credentialsChanged();
  };
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe(notice, now) {
      telling.observe(notice, now);
      // Rotated secret files are found without a restart.
      if (notice.kind === 'attempt-failed' && notice.reason === 'auth') reread(options, log, takeOver);
    },
  });
  const levels = createLogLevels(clock, log, operations, levelOf(config));
  const reloading = createReloading({
    clock,
    operations,
    config: () => config,
    load: options.load,
    async apply(next) {
      await metrics.reconfigure(meteredOf(next));
      config = next;
      secrets.takeOverToken(next);
      takeOver(next.secrets);
      levels.configured(levelOf(next));
      keeper.reload(toCoreSettings(next, bases));
    },
    settled: async ({ armed, gone }, waitMs) =>
      (await Promise.all([keeper.settled('arm', armed, waitMs), keeper.settled('remove', gone, waitMs)])).flat(),
  });
  const beats = createBeats({ mode: config.liveness.mode, bots: () => botsOf(config) });
  const evidence = createBotEvidence({
    clock,
    config: () => config,
    lookAtProcess: options.lookAtProcess,
    onProblem: telling.onEvidenceProblem,
  });
  const closeExchange = async () => {
    await exchange.close();
    await embedded?.close();
  };
  const listeners = await listen().catch(async (error: unknown) => {
    await closeExchange();
    await log.flush(FLUSH_MS);
    throw error;
  });

  async function listen() {
    const web = await startWeb({
      listen: config.web.listen.map(({ text }) => text),
      snapshot: keeper.snapshot,
      metrics,
      recentEvents: recent.list,
      version,
      clock,
    });
    const { status } = web;
    const parts = { clock, version, config: () => config, keeper, beats, metrics, operations };
    const sources = createControlSources({ ...parts, reloading, levels, status });
    const control = await startControl({
      listen: config.control.listen.map(({ text }) => text),
      token: secrets.token,
      sources,
    }).catch(async (error: unknown) => {
      await web.close();
      throw error;
    });
    return { web, control };
  }

  const { web, control } = listeners;
  introduce({ config, warnings: options.warnings, version, settings, bases, addresses: web.addresses }, log);
  for (const address of control.addresses) operations.controlListening(address);
  keeper.start();
  const stopBeats = beats.start(keeper.hear);
  const stopEvidence = evidence?.start(keeper.hear);
  const stopWatch = reloading.watch();
  return {
    log,
    keeper,
    addresses: web.addresses,
    controls: control.addresses,
    child: {
      began: (pid) => {
        if (evidence !== null && 'began' in evidence) evidence.began(pid);
      },
      ended: (code) => {
        if (evidence !== null && 'ended' in evidence) evidence.ended(code);
        else for (const bot of botsOf(config)) keeper.hear(bot, lastWord(code), 0);
      },
    },
    reload: () => reloading.reload('signal', 0),
    async stop(why) {
      stopWatch();
      const left = await keeper.stop(config.shutdown.policy, why);
      stopEvidence?.();
      stopBeats();
      levels.stop();
      await control.close();
      await web.close();
      await closeExchange();
      await log.flush(FLUSH_MS);
      return left;
    },
  };
}

function reread({ rereadSecrets }: DaemonOptions, { logger }: Log, takeOver: (found: Config['secrets']) => void): void {
  const read = rereadSecrets();
  if (read.kind === 'ok') takeOver(read.secrets);
  else logger.error({ event: 'secrets-unreadable' }, read.problems.join(' '));
}
