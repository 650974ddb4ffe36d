import { createServer } from 'node:net';
import { type Command, Option } from 'commander';
import { createSystemClock } from '../clock.ts';
import {
  ASSUMED_ROUND_TRIP_MS,
  type Config,
  carriedPerSecond,
  toCoreSettings,
  warnOfPace,
} from '../config/config.ts';
import { type Loaded, loadConfig, printConfig } from '../config/load.ts';
import { ASSUMED_ANSWER_MS, describePromise, planCadence, seconds } from '../core/promise.ts';
import { type ListenAddress, ListenError, listenError } from '../operator/listen.ts';
import { checkSocketPlace } from '../operator/socket.ts';
import { addConfigFlags, flagsFrom } from './config-flags.ts';
import { createControlClient, isRecord } from './control-client.ts';
import { type Edge, EXIT, type ExitCode } from './edge.ts';
import { checkLive, type LiveResult } from './live-check.ts';
import { tellWrong } from './start.ts';

/** Asks the exchange itself about a configuration that is right on paper. */
export type LiveCheck = (config: Config, edge: Pick<Edge, 'out' | 'err'>) => Promise<LiveResult>;

type LoadedOk = Loaded & { readonly kind: 'ok' };

/**
 * `check-config`: says what is wrong with the configuration (on standard error, exit 78), or what it means. Without
 * `--live` it opens no connection; a port is bound for a moment.
 */
export function registerCheckConfig(program: Command, edge: Edge, live: LiveCheck = checkLive): void {
  addConfigFlags(program.command('check-config'))
    .description('check file, environment and flags, and say what they mean; arms nothing')
    .option(
      '--embedded-exchange',
      'check as for run --embedded-exchange: base address, key and secret may be missing',
    )
    .option('--print', 'show the merged configuration with the source of every value')
    .option(
      '--live',
      'also ask the exchange whether it answers, accepts the key and knows the markets; touches no timer',
    )
    .addOption(
      new Option('--format <format>', 'how to show the result').choices(['text', 'json']).default('text'),
    )
    .action(async (options: Record<string, unknown>) => {
      const flags = flagsFrom(options);
      const loaded = loadConfig({ env: edge.env, flags });
      const asJson = options['format'] === 'json';
      if (loaded.kind === 'invalid') {
        if (asJson) edge.out(JSON.stringify({ ok: false, problems: loaded.problems }, null, 2));
        tellWrong(edge, flags, loaded.shown);
        edge.finish(EXIT.config);
        return;
      }
      const print = options['print'] === true;
      // What is asked of the exchange stands beside a document for programs, and not in it; what is wrong stands last.
      const wrong: string[] = [];
      const asking = { out: asJson ? edge.err : edge.out, err: (line: string) => void wrong.push(line) };
      const asked = options['live'] === true ? await live(loaded.config, asking) : null;
      const host = await checkHost(loaded.config);
      const isRight = wrong.length === 0 && host.problems.length === 0;
      const found: Found = { roundTripMs: asked?.roundTripMs ?? null, host, isRight };
      if (asJson) edge.out(JSON.stringify(toJson(loaded, found, print), null, 2));
      else for (const line of toText(loaded, found, print)) edge.out(line);
      for (const line of wrong) edge.err(line);
      edge.finish(exitCodeOf(asked, found));
    });
}

/** What was found out beside the configuration itself. */
interface Found {
  /** As it was measured; null where it was not. */
  readonly roundTripMs: number | null;
  readonly host: HostFound;
  /** Neither this host nor the exchange has something against it. */
  readonly isRight: boolean;
}

/** Only `--live` is about this host as it is now: a file is checked elsewhere, too, and while a daemon runs. */
function exitCodeOf(asked: LiveResult | null, { host }: Found): ExitCode {
  if (asked === null) return EXIT.ok;
  return asked.code === EXIT.ok && host.problems.length > 0 ? EXIT.config : asked.code;
}

interface MarketReport {
  readonly market: string;
  readonly timeoutSeconds: number;
  readonly renewEverySeconds: number;
  readonly types: readonly string[] | null;
  readonly bot: string;
  readonly promise: readonly string[];
}

function reportMarkets(config: Config, { roundTripMs }: Found): MarketReport[] {
  const settings = toCoreSettings(config, config.exchange.baseUrls);
  const { periodsMs } = planCadence(settings.markets, carriedPerSecond(settings, roundTripMs));
  const answerMs = Math.max(ASSUMED_ANSWER_MS, roundTripMs ?? 0);
  return config.markets.map(({ market, timeoutSeconds, types, bot }, index) => {
    const periodMs = periodsMs[index] ?? 0;
    const promise = describePromise(settings, index, periodMs, answerMs);
    return { market, timeoutSeconds, renewEverySeconds: periodMs / 1000, types, bot, promise };
  });
}

function paceOf(config: Config, { roundTripMs }: Found): string[] {
  return warnOfPace(toCoreSettings(config, config.exchange.baseUrls), roundTripMs);
}

function toJson({ config, warnings, sources }: LoadedOk, found: Found, print: boolean): object {
  return {
    ok: true,
    file: config.file,
    warnings: [...warnings, ...found.host.warnings, ...paceOf(config, found)],
    host: found.host.problems,
    roundTripMs: found.roundTripMs ?? ASSUMED_ROUND_TRIP_MS,
    roundTripMeasured: found.roundTripMs !== null,
    markets: reportMarkets(config, found),
    ...(print ? { config, sources: Object.fromEntries(sources) } : {}),
  };
}

const WHAT_A_STOP_DOES = {
  delete: 'deletes the timers',
  keep: 'leaves the timers to run out',
  handoff: 'renews the timers once more in full',
} as const satisfies Record<Config['shutdown']['policy'], string>;

/** How the daemon knows that the bot lives, in words. */
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

/** Where requests wait for each other: for which round trip the figures hold. */
function describePace({ exchange }: Config, { roundTripMs }: Found): string[] {
  if (exchange.nonce === 'window') return [];
  const how =
    roundTripMs === null
      ? `${ASSUMED_ROUND_TRIP_MS} ms, which is assumed; --live measures it`
      : `${roundTripMs.toFixed(0)} ms, as measured`;
  return [
    `Requests go out one after the other, because nonces are increasing. The times below hold for a round trip of ${how}.`,
  ];
}

function toText({ config, warnings, sources }: LoadedOk, found: Found, print: boolean): string[] {
  const { exchange, web, control, shutdown } = config;
  const bases = config.embeddedExchange ? 'the embedded one' : exchange.baseUrls.join(', ');
  const markets = reportMarkets(config, found);
  const listen = (addresses: Config['web']['listen']) =>
    addresses.length === 0 ? 'none' : addresses.map(({ text }) => text).join(', ');
  return [
    `${config.file ?? 'The environment alone'}: ${found.isRight ? 'the configuration is right' : 'no mistake in the configuration itself'}.`,
    ...found.host.problems.map((problem) => `On this host, run would refuse to start now: ${problem}`),
    `Exchange: ${bases}; nonces ${exchange.nonce}.`,
    ...describePace(config, found),
    ...(config.shard.count > 1
      ? [
          `Shard ${config.shard.index} of ${config.shard.count}, counted from 0: ${markets.length} of ${config.fleet.length} markets.`,
        ]
      : []),
    describeLiveness(config),
    `A deliberate stop ${WHAT_A_STOP_DOES[shutdown.policy]}, within ${seconds(shutdown.budgetSeconds * 1000)}.`,
    `Status page, health and metrics: ${listen(web.listen)}. Control: ${listen(control.listen)}${control.token === null ? '' : ', with a token'}.`,
    `Markets: ${markets.length}`,
    ...markets.flatMap(({ market, types, bot, promise }) => [
      `  ${market} (bot ${bot}): cancels ${types === null ? 'orders of all types, also those placed by hand' : `${types.join(' and ')} orders`}`,
      ...promise.map((sentence) => `    ${sentence}`),
    ]),
    ...[...warnings, ...found.host.warnings, ...paceOf(config, found)].map(
      (warning) => `Warning: ${warning}`,
    ),
    ...(print ? ['', ...printConfig(config, sources)] : []),
  ];
}

/** What was found on this host, one sentence each. */
interface HostFound {
  /** What `run` would refuse as things are, in its own words. */
  readonly problems: readonly string[];
  /** Where a daemon runs already: the checked configuration is for its restart, or for another one. */
  readonly warnings: readonly string[];
}

/** How long whoever listens at an address has to show that it is a killswitchd. */
const ANSWER_WITHIN_MS = 500;

/** Looks at every address that `run` would open on this host as it is now: each port is bound for a moment. */
async function checkHost({ web, control }: Config): Promise<HostFound> {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const [listener, { listen }] of [
    ['web', web],
    ['control', control],
  ] as const) {
    for (const address of listen) {
      try {
        if (address.kind === 'unix') await checkSocketPlace(address.path);
        else await bind(address);
      } catch (cause) {
        const error = cause instanceof ListenError ? cause : listenError(listener, address.text, cause);
        if (error.code !== 'EADDRINUSE' || !(await isDaemon(listener, address))) problems.push(error.message);
        else
          warnings.push(
            `${listener} listener ${address.text}: a killswitchd runs there; restart it with this configuration, or give this one an address of its own`,
          );
      }
    }
  }
  return { problems, warnings };
}

function bind({ host, port }: Extract<ListenAddress, { kind: 'tcp' }>): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}

async function isDaemon(listener: 'web' | 'control', address: ListenAddress): Promise<boolean> {
  const client = createControlClient({ address, token: null }, createSystemClock());
  const path = listener === 'web' ? '/livez?verbose' : '/v1/health';
  try {
    const { text, json } = await client.ask({ method: 'GET', path, withinMs: ANSWER_WITHIN_MS });
    if (listener === 'web') return text.includes('livez check ');
    return isRecord(json) && ('live' in json || isRecord(json['error']));
  } catch {
    return false;
  }
}
