import { once } from 'node:events';
import { createServer } from 'node:net';
import { type Command, Option } from 'commander';
import {
  ASSUMED_ROUND_TRIP_MS,
  type Config,
  cadenceAt,
  describePace,
  toCoreSettings,
  WHAT_A_STOP_DOES,
  warnOfPace,
} from '../config/config.ts';
import type { Flags } from '../config/environment.ts';
import { readConfigFile } from '../config/file.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import { findSources, printConfig } from '../config/print.ts';
import { formatPath } from '../config/problem.ts';
import { revealCredentials } from '../config/secrets.ts';
import { layerOf } from '../config/validate.ts';
import type { OrderType } from '../core/events.ts';
import { ASSUMED_ANSWER_MS, describePromise, seconds } from '../core/promise.ts';
import type { Verdict } from '../exchange/classify.ts';
import { createExchange } from '../exchange/exchange.ts';
import { checkSocketPlace, listenError } from '../operator/listen.ts';
import type { Clock, Exchange, ListenAddress, PingOutcome } from '../ports.ts';
import { addConfigFlags, refuse } from './config-flags.ts';
import { createControlClient } from './control-client.ts';
import { CommandError, type Edge, EXIT, type ExitCode, messageOf, misconfigured, pause } from './edge.ts';
import type { Given } from './flags.ts';

type CheckFlags = Flags & Given<'format', 'print' | 'live'>;

/** `check-config`: says what is wrong (exit 78), or what it means. Only `--live` opens connections. */
export function register(program: Command, edge: Edge): void {
  const embedded = 'check as for run --embedded-exchange: base address, key and secret may be missing';
  const live =
    'also ask the exchange whether it answers, accepts the key and knows the markets; touches no timer';
  const format = new Option('--format <format>', 'how to show the result').choices(['text', 'json']);
  addConfigFlags(program.command('check-config'))
    .description('check file, environment and flags, and say what they mean; arms nothing')
    .option('--embedded-exchange', embedded)
    .option('--print', 'show the merged configuration with the source of every value')
    .option('--live', live)
    .addOption(format.default('text'))
    .action((flags: CheckFlags) => checkConfig(flags, edge));
}

async function checkConfig(flags: CheckFlags, edge: Edge): Promise<void> {
  const loaded = loadConfig({ env: edge.env, flags });
  const asJson = flags.format === 'json';
  if (loaded.kind === 'invalid') {
    if (asJson) edge.out(JSON.stringify({ ok: false, problems: loaded.problems }, null, 2));
    return refuse(edge, flags, loaded.shown());
  }
  // With --format json the answers of the exchange go to standard error. Errors come last.
  const { config } = loaded;
  const tell = asJson ? edge.err : edge.out;
  const isLive = flags.live === true;
  const { code, wrong, roundTripMs } = await checkLive(loaded, isLive, tell, edge);
  const host = await checkHost(config, edge);
  const report = reportOn(loaded, roundTripMs, host);
  const sources = flags.print === true ? findSources(loaded) : null;
  if (asJson) {
    const printed = sources && { config, sources: Object.fromEntries(sources) };
    edge.out(JSON.stringify({ ok: true, file: config.file, ...report, ...printed }, null, 2));
  } else {
    for (const line of toText(config, report, wrong === '')) edge.out(line);
    for (const line of sources === null ? [] : ['', ...printConfig(config, sources)]) edge.out(line);
  }
  if (wrong !== '') edge.err(wrong);
  // Only `--live` is about this host and its way to the exchange as they are now: a file is checked elsewhere, too, and while a daemon runs.
  const isKept = host.problems.length === 0 && report.renewalsCarried;
  edge.finish(code === EXIT.ok && isLive && !isKept ? EXIT.config : code);
}

/** What the configuration means. `measuredMs`: the round trip; null where it was not measured. */
function reportOn({ config, warnings }: LoadedConfig, measuredMs: number | null, host: Host) {
  const settings = toCoreSettings(config, config.exchange.baseUrls);
  const { periodsMs, overload } = cadenceAt(settings, measuredMs);
  const answerMs = Math.max(ASSUMED_ANSWER_MS, measuredMs ?? 0);
  return {
    warnings: [...warnings, ...host.warnings, ...warnOfPace(settings, measuredMs)],
    host: host.problems,
    roundTripMs: measuredMs ?? ASSUMED_ROUND_TRIP_MS,
    roundTripMeasured: measuredMs !== null,
    renewalsCarried: overload === 1,
    markets: settings.markets.map((settled, index) => {
      const { market, timeoutMs, types, bot } = settled;
      const periodMs = (periodsMs[index] ?? 0) * overload;
      const promise = describePromise(settings, settled, periodMs, answerMs);
      const seconds = { timeoutSeconds: timeoutMs / 1000, renewEverySeconds: periodMs / 1000 };
      return { market, ...seconds, types, bot, promise };
    }),
  };
}
type Report = ReturnType<typeof reportOn>;

function describeLiveness({ liveness, control }: Config): string {
  const { mode, file, url, probeEverySeconds, ttlSeconds, startupGraceSeconds } = liveness;
  const every = `every ${seconds(probeEverySeconds * 1000)}`;
  const how = {
    beat: `beats at ${control.listen.map(({ text }) => text).join(', ')}`,
    file: `touches ${file}, looked at ${every}`,
    http: `answers at ${url}, asked ${every}`,
    process: `runs as a child of killswitchd exec, looked at ${every}`,
    none: null,
  }[mode];
  if (how === null) return `Bot: liveness mode ${mode}.`;
  const lifetime = `a sign of life counts for ${seconds(ttlSeconds * 1000)}, the first may take ${seconds(startupGraceSeconds * 1000)}`;
  return `Bot: liveness mode ${mode}: it ${how}; ${lifetime}.`;
}

function toText(config: Config, report: Report, isRight: boolean): string[] {
  const { exchange, shard, web, control, shutdown } = config;
  const { host, markets, warnings, roundTripMs, roundTripMeasured, renewalsCarried } = report;
  const how = roundTripMeasured ? ', as measured' : ', which is assumed; --live measures it';
  const bases = config.embeddedExchange ? 'the embedded one' : exchange.baseUrls.join(', ');
  const tooFew =
    'FEWER THAN THREE RENEWALS FIT INTO EACH TIMEOUT: not all that are needed can be carried, see the warnings.';
  const ofShard = `Shard ${shard.index} of ${shard.count}, counted from 0: ${markets.length} of ${config.fleet.length} markets.`;
  const listen = (addresses: Config['web']['listen']) =>
    addresses.map(({ text }) => text).join(', ') || 'none';
  return [
    `${config.file ?? 'The environment alone'}: ${isRight && host.length === 0 && renewalsCarried ? 'the configuration is right' : 'no mistake in the configuration itself'}.`,
    ...(renewalsCarried ? [] : [tooFew]),
    ...host.map((problem) => `On this host, run would refuse to start now: ${problem}`),
    `Exchange: ${bases}; nonces ${exchange.nonce}.`,
    ...(exchange.nonce === 'window' ? [] : [describePace(roundTripMs, how)]),
    ...(shard.count > 1 ? [ofShard] : []),
    describeLiveness(config),
    `A deliberate stop ${WHAT_A_STOP_DOES[shutdown.policy]}, within ${seconds(shutdown.budgetSeconds * 1000)}.`,
    `Status page, health and metrics: ${listen(web.listen)}. Control: ${listen(control.listen)}${control.token === null ? '' : ', with a token'}.`,
    `Markets: ${markets.length}`,
    ...markets.flatMap(({ market, types, bot, promise }) => [
      `  ${market} (bot ${bot}): cancels ${types === null ? 'orders of all types, also those placed by hand' : `${types.join(' and ')} orders`}`,
      ...promise.map((sentence) => `    ${sentence}`),
    ]),
    ...warnings.map((warning) => `Warning: ${warning}`),
  ];
}

/** How long whoever listens at an address has to show that it is a killswitchd. */
const ANSWER_WITHIN_MS = 500;

type Host = Awaited<ReturnType<typeof checkHost>>;

/** Looks at every address that `run` would open on this host as it is now: each port is bound for a moment. */
async function checkHost(config: Config, edge: Edge) {
  /** What `run` would refuse as things are, in its own words. */
  const problems: string[] = [];
  /** Where a daemon runs already: the configuration is for its restart, or for another one. */
  const warnings: string[] = [];
  for (const listener of ['web', 'control'] as const) {
    for (const address of config[listener].listen) {
      try {
        if (address.kind === 'unix') await checkSocketPlace(address.path);
        else {
          const server = createServer().listen({ host: address.host, port: address.port, exclusive: true });
          await once(server, 'listening');
          await once(server.close(), 'close');
        }
      } catch (cause) {
        const error = listenError(listener, address, cause);
        const advice = 'restart it with this configuration, or give this one an address of its own';
        if (error.code === 'EADDRINUSE' && (await isDaemon(listener, address, edge)))
          warnings.push(`${listener} listener ${address.text}: a killswitchd runs there; ${advice}`);
        else problems.push(error.message);
      }
    }
  }
  return { problems, warnings };
}

async function isDaemon(kind: 'web' | 'control', address: ListenAddress, edge: Edge): Promise<boolean> {
  const client = createControlClient({ kind, address, token: null }, edge);
  const path = kind === 'web' ? '/livez?verbose' : '/v1/health';
  try {
    const { text, said, error } = await client.ask(path, ANSWER_WITHIN_MS);
    return kind === 'web' ? text.includes('livez check ') : error !== null || 'live' in (said ?? {});
  } catch {
    return false;
  }
}

/** No exchange has this market. */
const NO_MARKET = 'KILLSWITCHD_CHECK';
/** The first one opens the connection. */
const PINGS = 5;
/** As long as a request lives by default. The first attempt of a ping has half of it. */
const ANSWERED_WITHIN_MS = 10_000;
/** The search for a nonce that counts, after a clock that was far ahead, takes so many tries. */
const SEARCH_TRIES = 8;
/** What another process has used within the same second is passed a second later, once its answer shows the time. */
const MOST_TRIES = SEARCH_TRIES + 2;
const NEXT_SECOND_MS = 1000;

/**
 * `check-config --live`: pings every base address, shows the key to the first one, and asks it about every market. No
 * timer is touched: a timer of 1 s of an order type that there is not is refused, whatever the market is.
 */
async function checkLive(loaded: LoadedConfig, isAsked: boolean, out: Edge['out'], { clock }: Edge) {
  const { config } = loaded;
  /** `roundTripMs`: of the first base address, as pings found it; null where it did not answer or was not asked. */
  const found = { code: EXIT.ok as ExitCode, wrong: '', roundTripMs: null as number | null };
  if (!isAsked) return found;
  if (config.embeddedExchange) {
    out('Live: nothing to ask, the exchange is embedded.');
    return found;
  }
  const { baseUrls: bases, allowPlainHttp, nonce } = config.exchange;
  const credentials = () => revealCredentials(config.secrets);
  const exchange = createExchange({ bases, allowPlainHttp, credentials, nonce, clock });
  try {
    for (const [base, url] of bases.entries()) {
      const latencyMs = await measure(exchange, base, url);
      if (base === 0) found.roundTripMs = latencyMs;
      out(`Live: ${url} answers a ping in ${latencyMs.toFixed(0)} ms.`);
    }
    await checkKeyAndMarkets(loaded, exchange, clock, out);
  } catch (error) {
    found.code = error instanceof CommandError ? error.exitCode : EXIT.unreachable;
    found.wrong = messageOf(error).replaceAll(/^/gm, 'Live: ');
  }
  await exchange.close();
  return found;
}

async function checkKeyAndMarkets(loaded: LoadedConfig, exchange: Exchange, clock: Clock, out: Edge['out']) {
  const { markets } = loaded.config;
  const verdict = await ask(exchange, clock, NO_MARKET);
  if (verdict.kind === 'unauthorised')
    throw new CommandError(EXIT.refused, `the exchange refuses the key: ${verdict.detail}`);
  const carriedOut = `the exchange carried out what it must refuse: ${verdict.kind}`;
  if (verdict.kind !== 'refused')
    throw new CommandError(EXIT.unreachable, 'detail' in verdict ? verdict.detail : carriedOut);
  out('Live: the exchange accepts the key.');
  if (!namesMarket(verdict)) return out('Live: the exchange does not say whether it knows a market.');
  const unknown: string[] = [];
  for (const { market } of markets)
    if (namesMarket(await ask(exchange, clock, market)))
      unknown.push(`${labelOf(market, loaded)}: the exchange does not know the market ${market}.`);
  if (unknown.length > 0) throw misconfigured(unknown.join('\n'));
  out(`Live: the exchange knows ${markets.length === 1 ? 'the market' : `all ${markets.length} markets`}.`);
}

function labelOf(market: string, loaded: LoadedConfig): string {
  const { fleet, file } = loaded.config;
  const path = ['markets', fleet.findIndex((one) => one.market === market)];
  const isInFile = layerOf(loaded.layers, path)?.source === 'file';
  return file !== null && isInFile ? readConfigFile(file).place(path).label : formatPath(path);
}

/** What a failed ping means where the words of a library, or of another server, do not say it. */
function explainPing(detail: string, url: string): string {
  if (detail.includes('wrong version number'))
    return `it does not answer with TLS; did you mean ${url.replace('https:', 'http:')}?`;
  return /^HTTP 404\b/.test(detail) ? `${detail}; this server has no API of the exchange` : detail;
}

/** The median of some pings, in milliseconds. Rejects where one is not answered. */
async function measure(exchange: Exchange, base: number, url: string): Promise<number> {
  const latencies: number[] = [];
  for (let pings = 0; pings < PINGS; pings += 1) {
    const { promise, resolve } = Promise.withResolvers<PingOutcome>();
    exchange.ping(base, ANSWERED_WITHIN_MS, resolve);
    const outcome = await promise;
    if (!outcome.ok) throw new Error(`${url}: ${explainPing(outcome.detail ?? 'no answer', url)}`);
    if (pings > 0) latencies.push(outcome.latencyMs);
  }
  return latencies.toSorted((one, other) => one - other)[Math.floor(latencies.length / 2)] ?? 0;
}

/** Resolves with the refusal of what is refused for every market. A stale nonce is followed by others further ahead. */
async function ask(exchange: Exchange, clock: Clock, market: string): Promise<Verdict> {
  const types = ['none'] as unknown as readonly OrderType[];
  const always = { base: 0, fresh: false, signed: () => undefined, mayWrite: () => true };
  for (let tries = 1; ; tries += 1) {
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    const giveUp = exchange.sync({ market, timeoutSeconds: 1, types, ...always }, resolve);
    const cancel = clock.after(ANSWERED_WITHIN_MS, giveUp);
    const verdict = await promise;
    cancel();
    if (verdict.kind !== 'nonce' || tries === MOST_TRIES) return verdict;
    if (tries === SEARCH_TRIES) await pause(clock, NEXT_SECOND_MS);
  }
}

/** The exchange names all that is wrong with such a request: whether the market is among it. */
function namesMarket(verdict: Verdict): boolean {
  return verdict.kind === 'refused' && (verdict.code === 31 || 'market' in (verdict.fields ?? {}));
}
