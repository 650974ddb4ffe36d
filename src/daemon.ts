import type { Config } from './config/config.ts';
import { toCoreSettings } from './config/core-settings.ts';
import type { SecretsRead } from './config/secrets.ts';
import type { LeftArmed, Notice } from './core/notice.ts';
import { describePromise } from './core/promise.ts';
import type { CoreSettings } from './core/settings.ts';
import { planCadence } from './core/timing.ts';
import { createExchange } from './exchange/exchange.ts';
import { createKeeper, type Keeper } from './keeper.ts';
import { startWeb, type Web } from './operator/web.ts';
import type { Clock, Observer } from './ports.ts';
import { createNarrator } from './simulator/narration.ts';
import { DEMO_ORDERS } from './simulator/resting-orders.ts';
import { type SimulatedServer, startSimulatedServer } from './simulator/server.ts';
import { createLog, type Log, logNotices } from './telemetry/log.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { createRecentEvents } from './telemetry/recent-events.ts';

export interface DaemonOptions {
  readonly config: Config;
  readonly warnings: readonly string[];
  readonly clock: Clock;
  readonly version: string;
  readonly nodeVersion: string;
  /** Reads the secret files again; asked whenever the exchange refuses the key. */
  readonly rereadSecrets: () => SecretsRead;
  /** Where log lines go; standard output unless given. */
  readonly write?: (text: string) => void;
}

export interface Daemon {
  readonly log: Log;
  /** Where the status page is; empty where none is served. */
  readonly addresses: readonly string[];
  /** Ends the timers as the policy says, then everything else in the reverse order of its start. */
  stop(why: string): Promise<readonly LeftArmed[]>;
}

type Credentials = { readonly key: string; readonly secret: string };

/** How long the end waits for a slow reader of the log. */
const FLUSH_MS = 500;

/**
 * Builds every part and starts it: log, embedded exchange, exchange client, keeper, web. The web listener is bound
 * before the first timer is armed, so that a taken port arms nothing. Rejects where an address cannot be bound.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { config, clock, version, nodeVersion } = options;
  let credentials: Credentials = reveal(config.secrets);
  let metrics: Metrics | null = null;
  const log = createLog({
    level: config.log.level === 'trace' ? 'debug' : config.log.level,
    format: config.log.format,
    clock,
    onLine: (level) => metrics?.countLogLine(level),
    onDrop: () => metrics?.countDroppedLogLine(),
    secrets: () => [credentials.secret, credentials.key],
  });
  const embedded = config.embeddedExchange ? await startEmbedded(clock, credentials, log) : null;
  const bases = embedded === null ? config.exchange.baseUrls : [embedded.url];
  const settings = toCoreSettings(config, bases);
  metrics = createMetrics({ version, revision: 'unknown', nodeVersion, clock, ...meters(settings) });
  const recent = createRecentEvents({ bases });
  const exchange = createExchange({
    bases,
    credentials: () => credentials,
    nonce: settings.nonce,
    clock,
    budget: settings.budget,
    connections: settings.connections,
    userAgent: `killswitchd/${version}`,
  });
  const rereadKey = onRefusedKey(() => {
    const read = options.rereadSecrets();
    if (read.kind !== 'ok') return log.logger.error({ event: 'secrets-unreadable' }, read.problems.join(' '));
    const found = reveal(read.secrets);
    if (found.key === credentials.key && found.secret === credentials.secret) return;
    credentials = found;
    log.logger.info({ event: 'secrets-changed' }, 'The secret files hold a new key: it is tried at once.');
    keeper.credentialsChanged();
  });
  const observers = [metrics.observe, logNotices(log.logger, { bases }), recent.observe, rereadKey];
  const keeper = createKeeper({
    settings,
    clock,
    exchange,
    observe: (notice, now) => {
      for (const observe of observers) observe(notice, now);
    },
  });
  const web = await startStatus(options, keeper, metrics, recent.list).catch(async (error: unknown) => {
    await exchange.close();
    await embedded?.close();
    await log.flush(FLUSH_MS);
    throw error;
  });
  introduce(options, settings, bases, web.addresses, log);
  keeper.start();
  return {
    log,
    addresses: web.addresses,
    async stop(why) {
      const left = await keeper.stop(config.shutdown.policy, why);
      await web.close();
      await exchange.close();
      await embedded?.close();
      await log.flush(FLUSH_MS);
      return left;
    },
  };
}

function reveal(secrets: Config['secrets']): Credentials {
  return { key: secrets.apiKey.reveal(), secret: secrets.apiSecret.reveal() };
}

function meters(settings: CoreSettings) {
  return {
    markets: settings.markets.map(({ market, types, timeoutMs }) => ({
      market,
      types,
      timeoutSeconds: timeoutMs / 1000,
    })),
    bases: settings.bases,
    bots: [...new Set(settings.markets.map(({ bot }) => bot))],
    policy: settings.shutdown.policy,
  };
}

/** Calls `reread` for every refusal of the key, so that rotated secret files are found without a restart. */
function onRefusedKey(reread: () => void): Observer {
  return (notice: Notice) => {
    if (notice.kind === 'attempt-failed' && notice.reason === 'auth') reread();
  };
}

function startEmbedded(clock: Clock, { key, secret }: Credentials, log: Log): Promise<SimulatedServer> {
  return startSimulatedServer({
    clock,
    listen: { host: '127.0.0.1', port: 0 },
    exchange: { keys: [{ key, secret, account: 'main' }] },
    orders: DEMO_ORDERS,
  }).then((server) => {
    const narrate = createNarrator((line) =>
      log.logger.info({ event: 'exchange-said' }, `Exchange: ${line}`),
    );
    server.exchange.log.subscribe(narrate);
    return server;
  });
}

function startStatus(
  { config, clock, version }: DaemonOptions,
  keeper: Keeper,
  metrics: Metrics,
  recentEvents: ReturnType<typeof createRecentEvents>['list'],
): Promise<Web> {
  return startWeb({
    listen: config.web.listen.map(({ text }) => text),
    snapshot: () => keeper.snapshot(),
    metrics,
    recentEvents,
    version,
    clock,
  });
}

/** Says what this daemon guards and what it promises, before the first timer is armed. */
function introduce(
  { config, warnings, version }: DaemonOptions,
  settings: CoreSettings,
  bases: readonly string[],
  addresses: readonly string[],
  { logger }: Log,
): void {
  const markets = settings.markets.length;
  const where = config.embeddedExchange ? `the embedded simulated exchange ${bases[0]}` : bases.join(', ');
  logger.info(
    { event: 'started', version, markets, bases },
    `killswitchd ${version} guards ${markets} ${markets === 1 ? 'market' : 'markets'} at ${where}.`,
  );
  for (const warning of warnings) logger.warn({ event: 'config-warning' }, `${warning}.`);
  const capacityPerSecond = (settings.budget.requests * 1000) / settings.budget.windowMs;
  const { periodsMs } = planCadence(settings.markets, capacityPerSecond);
  for (const [index, { market }] of settings.markets.slice(0, 100).entries()) {
    const promise = describePromise(settings, index, periodsMs[index] ?? 0);
    logger.info({ event: 'promise', market, promise }, promise.join(' '));
  }
  for (const address of addresses) {
    logger.info({ event: 'web-listening', address }, `Status page, health and metrics: ${address}`);
  }
  const { policy, budgetMs } = settings.shutdown;
  const does = {
    delete: 'deletes the timers',
    keep: 'leaves the timers to fire',
    handoff: 'renews the timers once more and leaves them to a successor',
  }[policy];
  logger.info({ event: 'stop-means', policy }, `SIGTERM or Ctrl-C ${does}, within ${budgetMs / 1000} s.`);
}
