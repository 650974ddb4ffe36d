import { readFileSync } from 'node:fs';
import { botsOf, ownerOf, placesOfBots } from '../config/config.ts';
import type { LeftArmed } from '../core/notice.ts';
import { createBeats } from '../liveness/beats.ts';
import { createFileEvidence, createFileLook } from '../liveness/file.ts';
import { createHttpEvidence } from '../liveness/http.ts';
import { createProcessEvidence, type LookAtProcess } from '../liveness/process.ts';
import type { Looking } from '../liveness/rounds.ts';
import { startControl } from '../operator/control.ts';
import type { ControlSources } from '../operator/control-sources.ts';
import { isWell } from '../operator/health.ts';
import { LEAST_CONNECTIONS } from '../operator/listen.ts';
import { startWeb } from '../operator/web.ts';
import type { Cancel, Clock, Evidence } from '../ports.ts';
import type { Log, LogOptions } from '../telemetry/log.ts';
import type { ServiceManager } from '../telemetry/notify-socket.ts';
import { createSupervision } from '../telemetry/systemd.ts';
import { within } from '../util/pace.ts';
import { VERSION } from '../version.ts';
import { createGuard, createSecrets } from './guard.ts';
import { createInForce, createReloading, type ReloadOptions, type Running } from './reloading.ts';
import { createTelemetry, introduce } from './telemetry.ts';
import { openHttpProber } from './url-requests.ts';

export interface DaemonOptions extends ReloadOptions, Pick<LogOptions, 'terminal' | 'write'> {
  readonly nodeVersion: string;
  /** Where to report that the daemon is ready and lives; null where nobody supervises it. */
  readonly manager: ServiceManager | null;
  /** For `exec`, whose bot is a child of this process and ends before the timers do: how the child is looked at. */
  readonly lookAtChild?: LookAtProcess;
}

export type Daemon = Awaited<ReturnType<typeof startDaemon>>;

/** How long everything but the timers has to end: the last word to a service manager takes 2 s at most. */
const CLOSE_MS = 3000;

/** Binds the listeners before the first timer is armed: a taken port arms nothing. Rejects where one cannot be bound. */
export async function startDaemon(options: DaemonOptions) {
  const { clock, loaded, manager, lookAtChild } = options;
  const { config } = loaded;
  const secrets = createSecrets(config);
  const embedded = config.embeddedExchange ? await startEmbedded(clock, secrets.credentials()) : null;
  const bases = embedded === null ? config.exchange.baseUrls : [embedded.url];
  const telemetry = createTelemetry({ ...options, config, bases, secrets: secrets.all });
  const { log, metrics, notifying, operations } = telemetry;
  embedded?.narrate(log);
  const inForce = createInForce(clock, config, (guarded) => guard.follow(guarded));
  const rereadSecrets = () => reloading.rereadSecrets();
  const guard = createGuard({ config, clock, bases, secrets, telemetry, rereadSecrets });
  const { keeper } = guard;
  const supervision = manager === null ? null : createSupervision({ manager, clock, view: keeper.view, log });
  const parts = { ...options, inForce, telemetry, guard, supervision };
  const reloading = createReloading(parts);
  const bots = createBots(parts, reloading);
  const closeExchange = () => guard.close().then(() => embedded?.close());
  const { web, control } = await openListeners(parts, reloading, bots).catch(async (error: unknown) => {
    await closeExchange();
    await log.flush();
    throw error;
  });
  introduce(loaded, log, bases, web.addresses, lookAtChild !== undefined);
  for (const address of control.addresses) operations.controlListening(address);
  if (supervision !== null) keeper.onTurn(supervision.turned);
  keeper.onWake(metrics.wokeUp);
  keeper.start();
  notifying.start(() => isWell(keeper.snapshot()));
  bots.watch();
  reloading.watch();
  let leftArmed: readonly LeftArmed[] | null = null;
  return {
    log,
    keeper,
    addresses: web.addresses,
    controls: control.addresses,
    child: bots.child,
    config: inForce.config,
    /** What `stop` resolves with, as soon as it is known; null before. */
    left: () => leftArmed,
    /** For a signal: nobody waits for what becomes of the markets. */
    reload: () => reloading.take('signal'),
    /** Ends the timers as configured, or leaves them with `keep`. Then closes the rest, for 3 s at most. */
    async stop(why: string, policy?: 'keep'): Promise<readonly LeftArmed[]> {
      reloading.stop();
      supervision?.stopping();
      inForce.end();
      bots.lookMoreOften();
      const left = await keeper.stop(policy ?? inForce.config().shutdown.policy, why);
      leftArmed = left;
      bots.unwatch();
      telemetry.levels.stop();
      const close = async () => {
        const told = supervision?.stopped(left);
        const closed = control.close().then(() => web.close());
        await Promise.all([closed, closeExchange(), told, notifying.close()]);
        await log.flush();
      };
      await within(clock, CLOSE_MS, close());
      return left;
    },
    /** Resets every connection to the exchange at once: no request that was given up may arrive after the end. */
    resetConnections: () => void guard.close(),
  };
}

/** The exchange that the daemon brings along, with orders to guard. Other starts do not wait for it to be loaded. */
async function startEmbedded(clock: Clock, credentials: { readonly key: string; readonly secret: string }) {
  const { startSimulatedServer } = await import('../simulator/server.ts');
  const { DEMO_ORDERS } = await import('../simulator/state.ts');
  const { createNarrator } = await import('../simulator/event-log.ts');
  const listen = { host: '127.0.0.1', port: 0 };
  const exchange = { keys: [{ ...credentials, account: 'main' as const }] };
  const server = await startSimulatedServer({ clock, listen, exchange, orders: DEMO_ORDERS });
  const narrate = ({ logger }: Log) => {
    const say = (line: string) => logger.info({ event: 'exchange-said' }, `Exchange: ${line}`);
    server.exchange.log.subscribe(createNarrator(say));
  };
  return { ...server, narrate };
}

interface Parts extends DaemonOptions, Running {}
type Reloading = ReturnType<typeof createReloading>;
type Bots = ReturnType<typeof createBots>;

/** A bot has as long to answer its URL, so that it is not less. */
const LOOKS_IN_STOP_MS = 1000;

/** What the daemon knows of the bots: what they say of themselves, and what is looked at. */
function createBots(parts: Parts, reloading: Reloading) {
  const { clock, inForce, guard, telemetry, lookAtChild } = parts;
  const { config, guarded, bots } = inForce;
  const { mode } = config().liveness;
  const beats = createBeats({ mode, bots });
  let longestMs = Number.POSITIVE_INFINITY;
  // All but the mode is asked for at each look: a reload needs no restart.
  const probeEveryMs = () => Math.min(guarded().liveness.probeEverySeconds * 1000, longestMs);
  const looking: Looking = { clock, probeEveryMs, onProblem: telemetry.onEvidenceProblem };
  const placesOf = (key: 'file' | 'url') => () => placesOfBots(guarded(), key);
  // Where the child itself is the evidence, it is looked at; else its end is all that is taken from it.
  const look = mode === 'process' && lookAtChild ? lookAtChild : null;
  const child = createProcessEvidence({ ...looking, bots: () => botsOf(guarded().markets), look });
  const evidence: Evidence[] = [];
  if (mode === 'beat') evidence.push(beats);
  if (lookAtChild !== undefined) evidence.push(child);
  if (mode === 'file')
    evidence.push(createFileEvidence({ ...looking, files: placesOf('file'), look: createFileLook() }));
  if (mode === 'http') {
    const open = (url: string) => openHttpProber(clock, url);
    evidence.push(createHttpEvidence({ ...looking, urls: placesOf('url'), open }));
  }
  let ends: readonly Cancel[] = [];
  const unwatch = () => {
    for (const end of ends) end();
  };
  return {
    beats,
    child: {
      began: child.began,
      ended(code: number | null): void {
        child.ended(code);
        // Processes that the bot has left behind may go on giving evidence; they are not the bot.
        unwatch();
        // A reload could name a new bot, which would have a start-up grace although nothing of it lives.
        reloading.stop();
      },
    },
    watch(): void {
      ends = evidence.map((one) => one.start(guard.keeper.hear));
    },
    /** Looks at them at least once a second from now on: a stop counts only what is newer than itself. */
    lookMoreOften(): void {
      longestMs = LOOKS_IN_STOP_MS;
    },
    unwatch,
  };
}

function sourcesOf(parts: Parts, reloading: Reloading, { beats }: Bots): Omit<ControlSources, 'status'> {
  const { cancellations, levels, metrics, operations } = parts.telemetry;
  const { config, guarded, bots } = parts.inForce;
  const { keeper } = parts.guard;
  const marketsOf = (bot: string) =>
    guarded().markets.flatMap((market) => (market.bot === bot ? market.market : []));
  return {
    clock: parts.clock,
    hide: parts.guard.hide,
    snapshot: keeper.snapshot,
    view: keeper.view,
    markets: () => guarded().markets.map(({ market }) => market),
    elsewhere(market) {
      const { fleet, shard } = config();
      if (!fleet.some((one) => one.market === market)) return null;
      return { index: ownerOf(market, shard.count), count: shard.count };
    },
    bots,
    ttlMs: () => config().liveness.ttlSeconds * 1000,
    hear(bot, says, proof, agoMs) {
      const heard = beats.hear(bot, says, proof, agoMs);
      metrics.beat(bot, heard.counted);
      return heard;
    },
    afterGoodbye: (bot, waitMs) => keeper.whenDone('goodbye', marketsOf(bot), waitMs),
    operate: keeper.operate,
    cancelled: () => cancellations.list().map(({ market }) => market),
    acknowledge(markets) {
      const seen = cancellations.acknowledge(markets);
      if (seen.acknowledged.length > 0) operations.acknowledged(seen.acknowledged);
      return seen;
    },
    reload: (waitMs) => reloading.reload('command', waitMs),
    logLevel: levels.level,
    setLogLevel: (level, forMs) => levels.set(level, forMs),
    onCommand: operations.commanded,
    onRefused: (reason) => operations.controlRefused(reason),
  };
}

/** The most connections to the exchange, while all are replaced, and what else a daemon has open. */
const RESERVED = 192;

/**
 * The most connections of each listener: two for each bot, 256 at least; fewer, and a warning, where renewals could lack
 * descriptors.
 */
function connectionsPerListener({ loaded, inForce, telemetry }: Parts): () => number {
  const { web, control } = loaded.config;
  const limit = mostFiles();
  // `localhost` may be two addresses.
  const all = [...web.listen, ...control.listen];
  const twice = all.filter((address) => address.kind === 'tcp' && address.host === 'localhost');
  const listeners = all.length + twice.length;
  let said = Number.POSITIVE_INFINITY;
  return () => {
    const bots = inForce.bots().length;
    const wanted = Math.max(LEAST_CONNECTIONS, 2 * bots);
    // A bot with a URL has a connection, and one that is being opened.
    const each = Math.floor((limit - RESERVED - 2 * bots) / listeners);
    if (listeners === 0 || each >= wanted) return wanted;
    const most = Math.max(2, each);
    if (most < said) {
      said = most;
      const text = `Only ${limit} files and connections may be open (ulimit -n): each listener takes at most ${most} connections, so that renewals have theirs.`;
      telemetry.log.logger.warn({ event: 'few-descriptors', limit, most }, text);
    }
    return most;
  };
}

/** Files that this process may have open at a time. */
function mostFiles(): number {
  try {
    const found = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return Number(found ?? Number.POSITIVE_INFINITY);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Opens the web listeners, then the control listeners. Rejects where one cannot be bound; then none is open. */
async function openListeners(parts: Parts, reloading: Reloading, bots: Bots) {
  const { clock, inForce, telemetry } = parts;
  const { config } = parts.loaded;
  const { log, metrics, cancellations } = telemetry;
  const mostConnections = connectionsPerListener(parts);
  const lists = { recentEvents: log.recent, cancellations: cancellations.list };
  const pages = { ...lists, snapshot: parts.guard.keeper.snapshot, metrics, version: VERSION, clock };
  const web = await startWeb({ ...pages, mostConnections, listen: config.web.listen });
  const { listen, access } = config.control;
  const sources = { ...sourcesOf(parts, reloading, bots), status: web.status };
  const token = () => inForce.config().control.token?.reveal() ?? null;
  const options = { sources, token, mostConnections, listen, access };
  const control = await startControl(options).catch(async (error: unknown) => {
    await web.close();
    throw error;
  });
  return { web, control };
}
