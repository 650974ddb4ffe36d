import type { ListenAddress } from '../ports.ts';
import { hideSecrets, isLoopback } from '../util/text.ts';
import { type Config, MEANINGLESS_KEYS, marketsOf, valueAt } from './config.ts';
import { type Flags, readEnvironment, readFlags } from './environment.ts';
import { readConfigFile } from './file.ts';
import { type Command, checkMeaning, findUrlFlaw, isPlainAndRemote, warningOfPlainHttp } from './meaning.ts';
import { formatPath, listProblems, type Path, type Problem } from './problem.ts';
import {
  type Contents,
  contentOf,
  type Environment,
  type FindFlaw,
  findSecrets,
  findSharedKey,
  findTokenFlaw,
  type LookAt,
  lookNow,
  readSecretFile,
  type Secret,
} from './secrets.ts';
import { checkLayer, createReport, DEFAULTS, type Layer, layerOf, mergeLayers } from './validate.ts';

export interface LoadedConfig {
  readonly kind: 'ok';
  readonly config: Config;
  readonly contents: Contents;
  /** Sentences about what is allowed and yet worth a thought. */
  readonly warnings: readonly string[];
  /** What each source says, the first of which wins key by key. */
  readonly layers: readonly Pick<Layer, 'source' | 'values'>[];
}

export type Loaded =
  | LoadedConfig
  | {
      readonly kind: 'invalid';
      /** One line per mistake: where, what was found, what is allowed, what was probably meant. Never a secret. */
      readonly problems: readonly string[];
      /** The same for a terminal: with the line of the file, and a mark under what is wrong. A reload has no time for it. */
      readonly shown: () => readonly string[];
      readonly contents: Contents;
    };

export interface LoadOptions {
  readonly env: Environment;
  readonly flags: Flags;
  /** What the configuration is for; left out where it is only looked at. `exec` needs no liveness mode. */
  readonly command?: Command | null | undefined;
  readonly lookAt?: LookAt | undefined;
}

/** Reads the configuration out of what `lookAt` sees; without it, the files are read anew. */
export type Load = (lookAt?: LookAt) => Loaded;

/**
 * Flags over environment over file over defaults. Reads the file that `--config` or `KILLSWITCHD_CONFIG` names and the
 * files of the secrets, and nothing else; without such a file the environment alone must be enough. Reports all
 * mistakes at once.
 */
export function loadConfig({ env, flags, command = null, lookAt: look = lookNow }: LoadOptions): Loaded {
  const contents = new Map<string, string>();
  const lookAt: LookAt = (path) => {
    const seen = look(path);
    contents.set(path, contentOf(seen));
    return seen;
  };
  const outer = [readFlags(flags), readEnvironment(env)];
  const embeddedExchange = flags.embeddedExchange === true;
  const found = findSecrets(env, { demo: embeddedExchange, lookAt });
  const { apiKey, apiSecret } = found;
  const known = [apiKey?.reveal(), apiSecret?.reveal(), env.KILLSWITCHD_API_KEY, env.KILLSWITCHD_API_SECRET];
  const problems = [...outer.flatMap((layer) => layer.problems), ...found.problems];

  const name = flags.config ?? env['KILLSWITCHD_CONFIG'] ?? null;
  const file = name === null || name === '' ? null : readConfigFile(name, lookAt);
  // Not `push(...)`: each of a hundred thousand would be an argument on the stack.
  for (const problem of file?.problems ?? []) problems.push(problem);
  // Without knowing what the file says, everything that it may say would be called missing.
  if (name === '' || file?.values === null) return invalid(problems, known, contents);

  const fileLayer = file === null ? [] : [checkLayer('file', file.values, file.place)];
  for (const problem of fileLayer.flatMap((layer) => layer.problems)) problems.push(problem);
  const layers: Layer[] = [...outer, ...fileLayer, DEFAULTS];
  const values = mergeLayers(layers);
  const report = createReport(problems, layers);
  const { fleet, ...checked } = checkMeaning(values, report, { embeddedExchange, command });
  const readFrom = (key: string, named: string | null, what: string, findMore: FindFlaw): Secret | null => {
    const read = named === null ? null : readSecretFile(named, what, lookAt, findMore);
    if (read?.kind === 'wrong') report.wrong(key, read.text);
    if (read?.kind !== 'ok') return null;
    const { secret, warning } = read.value;
    known.push(secret.reveal());
    if (warning !== null) found.warnings.push(`${key}: ${warning}`);
    return secret;
  };
  const { urlFile, pingUrlFile, format } = values.notify;
  const token = readFrom('control.tokenFile', values.control.tokenFile, 'token', findTokenFlaw);
  const findFlaw: FindFlaw = (text) => findUrlFlaw(text, format === 'telegram');
  const url = readFrom('notify.urlFile', urlFile, 'address', findFlaw);
  const pingUrl = readFrom('notify.pingUrlFile', pingUrlFile, 'address', (text) => findUrlFlaw(text, false));
  problems.push(...findSharedKey(found, values.shard, env));
  const { liveness } = checked;
  if (problems.length > 0 || apiKey === null || apiSecret === null || liveness === null) {
    // Beside an environment that says enough, this is no mistake.
    if (file !== null && Object.keys(file.values ?? {}).length === 0)
      problems.push({ place: file.place([]), text: 'the configuration file is empty, but for comments' });
    return invalid(problems, known, contents);
  }

  const config: Config = {
    ...values,
    ...checked,
    file: name,
    embeddedExchange,
    liveness,
    secrets: { apiKey, apiSecret },
    markets: marketsOf(values.shard, fleet),
    fleet,
    control: { ...checked.control, token },
    notify: { ...values.notify, url, pingUrl },
  };
  // Without the places: they would keep the parsed file.
  const sources = layers.map(({ source, values }) => ({ source, values }));
  const isWritten = (path: Path) => layerOf(layers, path)?.source !== 'default';
  const warnings = [...found.warnings, ...findWarnings(config, isWritten, command)];
  return { kind: 'ok', config, contents, warnings, layers: sources };
}

/** The messages. A secret that was also written where it does not belong is blanked out of them. */
function invalid(
  problems: readonly Problem[],
  known: readonly (string | undefined)[],
  contents: Contents,
): Loaded {
  const secrets = known.filter((secret) => secret !== undefined);
  const hide = (line: string) => hideSecrets(line, secrets);
  const shown = () => listProblems(problems, true).map(hide);
  return { kind: 'invalid', problems: listProblems(problems).map(hide), shown, contents };
}

/** Each begins with the key that it is about. */
function findWarnings(config: Config, isWritten: (path: Path) => boolean, command: Command | null): string[] {
  const { embeddedExchange, web, control, fleet, markets } = config;
  const { baseUrls, sameAccount } = config.exchange;
  const { index, count } = config.shard;
  const { mode } = config.liveness;
  const warnings: string[] = [];
  const warn = (isSo: boolean, sentence: string) => isSo && warnings.push(sentence);
  const unused = 'not used, since the daemon brings its own exchange (--embedded-exchange)';
  warn(embeddedExchange && isWritten(['exchange', 'baseUrls']), `exchange.baseUrls: ${unused}`);
  const others = `only ${baseUrls[0]} is used for renewals, the others only with exchange.sameAccount: true`;
  warn(baseUrls.length > 1 && !sameAccount, `exchange.baseUrls: ${others}`);
  for (const base of baseUrls.filter(isPlainAndRemote)) warnings.push(warningOfPlainHttp(base));

  const waits = `shard ${index} of ${count} guards no market; it waits for a shard.count above ${index}`;
  const none = `none of the ${fleet.length} markets belongs to shard ${index} of ${count}; it guards none`;
  warn(index >= count || markets.length === 0, `shard.index: ${index >= count ? waits : none}`);

  const anybody =
    'can read markets, addresses and states, without password or encryption; keep it to a private network, or listen on 127.0.0.1 behind a proxy with TLS and a password';
  for (const text of remote(web.listen)) warnings.push(`web.listen: whoever reaches ${text} ${anybody}`);

  const hasToken = control.tokenFile !== null;
  const open = control.listen.filter(({ kind }) => kind === 'tcp').map(({ text }) => text);
  const unguarded = `every user and program of this host may send beats and commands to ${open.join(', ')}; set control.tokenFile, or listen at a unix: socket only`;
  // Nothing of value is guarded at an exchange that the daemon brings along.
  warn(!hasToken && open.length > 0 && !embeddedExchange, `control.listen: ${unguarded}`);
  const needless =
    'of no meaning without a HOST:PORT in control.listen; a unix: socket is guarded by its mode';
  warn(hasToken && open.length === 0, `control.tokenFile: ${needless}`);
  const clear = 'and the token crosses the network unencrypted; keep it to a private network';
  for (const text of remote(control.listen))
    warnings.push(`control.listen: other hosts can reach ${text}, ${clear}`);

  const { urlFile, pingUrlFile } = config.notify;
  const usual = DEFAULTS.values as unknown as Config;
  const needs = (what: string, isThere: boolean, ...keys: readonly string[]) => {
    // At the default a key says what holds anyway.
    const set = keys.filter((key) => valueAt(config, key) !== valueAt(usual, key)).join(', ');
    warn(!isThere && set !== '', `${set}: of no meaning without ${what}`);
  };
  needs('a unix: socket in control.listen', control.listen.length > open.length, 'control.access');
  needs('notify.urlFile', urlFile !== null, 'notify.format', 'notify.name');
  needs('notify.pingUrlFile', pingUrlFile !== null, 'notify.pingEverySeconds');

  const paths = MEANINGLESS_KEYS[mode].map((key): Path => ['liveness', key]);
  const idle = paths.filter(isWritten).map(formatPath).join(', ');
  warn(idle !== '', `${idle}: of no meaning with liveness.mode: ${mode}`);
  const child = 'only for killswitchd exec -- BOT, which starts the bot; run refuses it';
  warn(mode === 'process' && command === null, `liveness.mode: process: ${child}`);
  const nobody =
    'nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead';
  warn(mode === 'none', `liveness.mode: none: ${nobody}`);
  const { policy, budgetSeconds } = config.shutdown;
  const deaf = `a stop hears a beat that is 0.5 s newer than itself, and ${budgetSeconds} s leave no time for one: the timers of bots without a goodbye are left to fire; take 2 or more`;
  const isDeaf = mode === 'beat' && policy === 'delete' && budgetSeconds < 2;
  warn(isDeaf && command !== 'exec', `shutdown.budgetSeconds: ${deaf}`);
  return warnings;
}

const remote = (listen: readonly ListenAddress[]) =>
  listen.flatMap((address) => (address.kind === 'tcp' && !isLoopback(address.host) ? [address.text] : []));
