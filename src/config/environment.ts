import { describe, formatPath, type Path, type Place, type Problem, RANK, type Tree } from './problem.ts';
import { FileSchema, MOST_SHARDS, type SchemaNode } from './schema.ts';
import { type Environment, SECRET_VARIABLES } from './secrets.ts';
import { checkLayer, type Layer, validate } from './validate.ts';

/** What the command line may say about the configuration, as it was written. */
export interface Flags {
  readonly config?: string | undefined;
  /** As KILLSWITCHD_MARKETS; several are joined. */
  readonly markets?: readonly string[] | undefined;
  readonly timeoutSeconds?: string | undefined;
  /** I/N. */
  readonly shard?: string | undefined;
  readonly livenessMode?: string | undefined;
  readonly shutdownPolicy?: string | undefined;
  /** HOST:PORT each. */
  readonly webListen?: readonly string[] | undefined;
  /** unix:/PATH or HOST:PORT each. */
  readonly controlListen?: readonly string[] | undefined;
  readonly logLevel?: string | undefined;
  readonly logFormat?: string | undefined;
  /** The daemon brings its own exchange: base address, key and secret may be missing. */
  readonly embeddedExchange?: boolean | undefined;
}

/** One thing that a variable, and often a flag, can say instead of the file. */
export interface Setting {
  readonly variable: string;
  readonly node: SchemaNode;
  /** The key of the file that it replaces; null where there is none. */
  readonly path: readonly string[] | null;
  readonly flag: { readonly name: string; readonly key: Exclude<keyof Flags, 'embeddedExchange'> } | null;
  /** The value as the file would have it. */
  readonly read: (value: unknown) => unknown;
  /** Positions in a list may be named in a message. */
  readonly list: boolean;
  /** What is wrong with a value that `read` does not understand; null where nothing is. */
  readonly refuse: (value: string) => string | null;
  /** Variables that say a part of the same. */
  readonly insteadOf: readonly string[];
}

const PREFIX = 'KILLSWITCHD_';

/** A variable for the key `path` of the file: its rule is that of the key, unless another one is given. */
function setting(variable: string, path: string, more: Partial<Setting> = {}): Setting {
  const steps = path.split('.');
  const node = steps.reduce<SchemaNode | undefined>((at, step) => at?.properties?.[step], FileSchema);
  return {
    variable: `${PREFIX}${variable}`,
    node: node ?? {},
    path: steps,
    flag: null,
    read: (value) => value,
    list: false,
    refuse: () => null,
    insteadOf: [],
    ...more,
  };
}

/** The rule of a variable that is not that of a key. */
function text(description: string, example: string): Pick<Setting, 'node'> {
  const node = { type: 'string', description, minLength: 1, examples: [example] };
  return { node };
}

/** A variable for which the file has no key. */
function alone(variable: string, example: string, description: string, more: Partial<Setting> = {}): Setting {
  return { ...setting(variable, '', more), ...text(description, example), path: null };
}

function flag(name: string): Pick<Setting, 'flag'> {
  const key = name.slice(2).replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
  return { flag: { name, key: key as Exclude<keyof Flags, 'embeddedExchange'> } };
}

const asList = (value: unknown) =>
  String(value)
    .split(',')
    .map((entry) => entry.trim());

/** A name before the dash: -1 is a mistake and no pod. */
const ORDINAL = /^(?:[^-].*-)?(\d{1,3})$/;
const SHARD = /^((?:[^/-][^/]*-)?\d{1,3})\/(\d{1,4})$/;

/** `2` and `killswitchd-2`, the name of a StatefulSet's pod, both as 2. */
const readOrdinal = (value: unknown) => Number(ORDINAL.exec(String(value))?.[1]);

function refuseOrdinal(value: string): string | null {
  if (ORDINAL.test(value)) return null;
  return `found ${describe(value)}; allowed: a whole number from 0 to ${MOST_SHARDS - 1}, or a name that ends in -NUMBER, such as killswitchd-2`;
}

/** `2/4`, or `killswitchd-2/4`, as the file would have it. */
function readShard(value: unknown): unknown {
  const [, index, count] = SHARD.exec(String(value)) ?? [];
  return { index: readOrdinal(index), count: Number(count) };
}

function refuseShard(value: string): string | null {
  const allowed = `found ${describe(value)}; allowed: I/N with I from 0 to N - 1, such as 2/4`;
  const [, index, count] = SHARD.exec(value) ?? [];
  if (count === undefined || Number(count) === 0) return allowed;
  if (readOrdinal(index) < Number(count)) return null;
  return `${allowed}: shards are counted from 0, and the last of ${count} is ${Number(count) - 1}/${count}`;
}

/** `BTC_USDT:60:spot+margin` as the file would have it. What does not fit stays a text, and is refused as a market. */
function readMarket(entry: string): unknown {
  const [market, seconds = '', types = '', ...rest] = entry.split(':');
  if (rest.length > 0 || market === entry) return entry;
  return {
    market,
    ...(seconds === '' ? {} : { timeoutSeconds: /^\d+$/.test(seconds) ? Number(seconds) : seconds }),
    ...(types === '' ? {} : { types: types.split('+') }),
  };
}

/** Every variable, in the order of the messages. */
export const SETTINGS: readonly Setting[] = [
  alone('CONFIG', '/etc/killswitchd/killswitchd.yaml', 'Name of the configuration file.', flag('--config')),
  alone('API_KEY', 'an-api-key', 'API key. Rather use the form with _FILE.'),
  alone('API_KEY_FILE', '/run/secrets/api-key', 'Name of a file that holds the API key.'),
  alone(
    'API_KEY_SOURCE',
    '/etc/killswitchd/main.key',
    'File of which that of KILLSWITCHD_API_KEY_FILE is a copy that the service manager makes at a start. Where it is newer, a reload is refused: restart the service.',
  ),
  alone('API_SECRET', 'an-api-secret', 'API secret. Rather use the form with _FILE.'),
  alone('API_SECRET_FILE', '/run/secrets/api-secret', 'Name of a file that holds the API secret.'),
  alone('API_SECRET_SOURCE', '/etc/killswitchd/main.secret', 'The same for KILLSWITCHD_API_SECRET_FILE.'),
  setting('BASE_URL', 'exchange.baseUrls', {
    ...text('Base address; instead of exchange.baseUrls.', 'https://exchange.example'),
    read: (value) => [value],
  }),
  setting('MARKETS', 'markets', {
    ...text(
      'Markets as MARKET[:SECONDS[:TYPE+TYPE]], separated by commas; instead of all markets of the file. Empty SECONDS take the default.',
      'BTC_USDT:60:spot+margin,ETH_USDT',
    ),
    ...flag('--markets'),
    read: (value) => asList(value).map(readMarket),
    list: true,
  }),
  setting('TIMEOUT_SECONDS', 'defaults.timeoutSeconds', flag('--timeout-seconds')),
  setting('LIVENESS_MODE', 'liveness.mode', flag('--liveness-mode')),
  setting('LIVENESS_FILE', 'liveness.file'),
  setting('LIVENESS_URL', 'liveness.url'),
  setting('SHARD', 'shard', {
    ...text(
      'Which shard of how many, I/N, counted from 0; I may be the name of a StatefulSet pod. Instead of shard.index and shard.count.',
      '2/4',
    ),
    ...flag('--shard'),
    read: readShard,
    refuse: refuseShard,
    insteadOf: [`${PREFIX}SHARD_INDEX`, `${PREFIX}SHARD_COUNT`],
  }),
  setting('SHARD_INDEX', 'shard.index', {
    ...text(
      'Which shard this daemon is, counted from 0, or the name of a StatefulSet pod, which ends in it.',
      'killswitchd-2',
    ),
    read: readOrdinal,
    refuse: refuseOrdinal,
  }),
  setting('SHARD_COUNT', 'shard.count'),
  setting('SHUTDOWN_POLICY', 'shutdown.policy', flag('--shutdown-policy')),
  setting('WEB_LISTEN', 'web.listen', {
    ...text('Addresses of the read-only listener, separated by commas.', '0.0.0.0:17477'),
    ...flag('--web-listen'),
    read: asList,
    list: true,
  }),
  setting('CONTROL_LISTEN', 'control.listen', {
    ...text('Addresses of the control listener, separated by commas.', 'unix:/run/killswitchd/control.sock'),
    ...flag('--control-listen'),
    read: asList,
    list: true,
  }),
  setting('CONTROL_ACCESS', 'control.access'),
  setting('CONTROL_TOKEN_FILE', 'control.tokenFile'),
  setting('NOTIFY_URL_FILE', 'notify.urlFile'),
  setting('NOTIFY_PING_URL_FILE', 'notify.pingUrlFile'),
  setting('LOG_LEVEL', 'log.level', flag('--log-level')),
  setting('LOG_FORMAT', 'log.format', flag('--log-format')),
  alone(
    'CONTROL',
    'unix:/run/killswitchd/control.sock',
    'Where commands such as status, and bots, find the daemon: unix:/PATH or HOST:PORT. The daemon itself does not read it.',
  ),
  alone(
    'BOT',
    'default',
    'Name under which a bot beats; for the example clients. The daemon itself does not read it.',
  ),
];

/** The environment variables that the daemon reads: what is checked and what `killswitchd schema env` prints. */
export const EnvironmentSchema = {
  type: 'object',
  properties: Object.fromEntries(SETTINGS.map(({ variable, node }) => [variable, node])),
  additionalProperties: false,
  description: 'Environment of killswitchd.',
};

/** The JSON Schema (draft-07) of the environment, as `killswitchd schema env` prints it. */
export function publishedEnvironmentSchema(): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'killswitchd environment',
    ...EnvironmentSchema,
  };
}

/** A layer of flags or variables, which may also name the configuration file. */
export interface OuterLayer extends Layer {
  /** Null where none is named; undefined where one is named wrongly. */
  readonly config: string | null | undefined;
}

/** What the environment says. Only `KILLSWITCHD_*` is looked at, and of that everything must be known. */
export function readEnvironment(environment: Environment): OuterLayer {
  const secrets: readonly string[] = SECRET_VARIABLES;
  const variables: Tree = {};
  for (const name of Object.keys(environment).sort()) {
    const value = environment[name];
    if (!name.startsWith(PREFIX) || value === undefined) continue;
    if (!secrets.includes(name) && !isServiceLink(name, environment)) variables[name] = value;
  }
  return readOuter('environment', variables, ({ variable }) => variable);
}

/**
 * Kubernetes gives every container variables about the services of its namespace: for a service named
 * `killswitchd-web` they begin with `KILLSWITCHD_WEB_SERVICE_HOST` and are nobody's typing mistake.
 */
function isServiceLink(name: string, environment: Environment): boolean {
  const service = /^(KILLSWITCHD(?:_[A-Z0-9_]+?)??)_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_.*)?$/.exec(name)?.[1];
  return service !== undefined && environment[`${service}_SERVICE_HOST`] !== undefined;
}

/** What the command line says. */
export function readFlags(flags: Flags): OuterLayer {
  const variables: Tree = {};
  for (const { variable, flag: known } of SETTINGS) {
    const value = known === null ? undefined : flags[known.key];
    if (value !== undefined) variables[variable] = typeof value === 'string' ? value : value.join(',');
  }
  return readOuter('flag', variables, ({ variable, flag: known }) => known?.name ?? variable);
}

/** More entries than any list has: the order within a variable must not run into the next variable. */
const MOST_ENTRIES = 1e6;

function readOuter(
  source: 'flag' | 'environment',
  variables: Tree,
  nameOf: (setting: Setting) => string,
): OuterLayer {
  const placeAt = (index: number, inside: Path, path: Path): Place => {
    const found = SETTINGS[index];
    const entry = typeof inside[0] === 'number' ? inside[0] / MOST_ENTRIES : 0;
    return found === undefined
      ? { label: formatPath(path), rank: RANK[source], offset: SETTINGS.length }
      : { label: formatPath([nameOf(found), ...inside]), rank: RANK[source], offset: index + entry };
  };
  const checked = validate(variables, { schema: EnvironmentSchema, noun: 'variable', prefix: PREFIX });
  const problems: Problem[] = [];
  const mistaken: Path[] = [];
  const refuse = (index: number, path: Path, why: string) => {
    problems.push({ place: placeAt(index, [], path), text: why });
    mistaken.push(SETTINGS[index]?.path ?? path);
  };
  for (const { path, text: why } of checked.mistakes) {
    const index = SETTINGS.findIndex(({ variable }) => variable === path[0]);
    refuse(index, path, why);
  }
  const written: Tree = {};
  for (const [index, one] of SETTINGS.entries()) {
    const value = checked.values[one.variable];
    if (one.path === null || value === undefined) continue;
    const beside = one.insteadOf.find((other) => checked.values[other] !== undefined);
    const why =
      beside === undefined
        ? one.refuse(typeof value === 'string' ? value : '')
        : `found beside ${beside}, which says the same; allowed: one of the two`;
    if (why === null) put(written, one.path, one.read(value));
    else refuse(index, one.path, why);
  }
  const layer = checkLayer(source, written, (path) => {
    const index = SETTINGS.findIndex((one) => one.path?.every((step, at) => step === path[at]));
    const found = SETTINGS[index];
    return placeAt(index, found?.list === true ? path.slice(found.path?.length) : [], path);
  });
  const configIsWrong = checked.mistakes.some(({ path }) => path[0] === `${PREFIX}CONFIG`);
  return {
    ...layer,
    problems: [...problems, ...layer.problems],
    mistaken: [...mistaken, ...layer.mistaken],
    config: configIsWrong ? undefined : ((checked.values[`${PREFIX}CONFIG`] as string | undefined) ?? null),
  };
}

function put(values: Tree, path: readonly string[], value: unknown): void {
  const [step = '', ...rest] = path;
  if (rest.length === 0) values[step] = value;
  else {
    const below = (values[step] ??= {}) as Tree;
    put(below, rest, value);
  }
}
