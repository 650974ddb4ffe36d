import {
  type Checked,
  describe,
  formatPath,
  ok,
  type Path,
  type Place,
  type Problem,
  RANK,
  type Tree,
  wrong,
} from './problem.ts';
import { FileSchema, joined, type SchemaNode } from './schema.ts';
import { type Environment, SECRET_VARIABLES } from './secrets.ts';
import { checkLayer, type Layer, validate } from './validate.ts';

/** What the command line says about the configuration, as it was written. */
export interface Flags {
  readonly config?: string | undefined;
  /** The daemon brings its own exchange: base address, key and secret may be missing. */
  readonly embeddedExchange?: boolean | undefined;
  /** The other flags of `SETTINGS`. A list may be given in parts. */
  readonly [key: string]: unknown;
}

/** One thing that a variable, and often a flag, can say instead of the file. */
export interface Setting {
  readonly variable: string;
  readonly node: SchemaNode;
  /** The key of the file that it replaces; null where there is none. */
  readonly path: readonly string[] | null;
  /** The flag that says the same: its name, what commander calls its value, and how help shows it. */
  readonly flag: Readonly<Record<'name' | 'key' | 'placeholder' | 'help', string>> | null;
  /** The value as the file would have it. */
  readonly read: (value: unknown) => Checked<unknown>;
  /** Positions in a list may be named in a message. */
  readonly list: boolean;
}

const PREFIX = 'KILLSWITCHD_';

type More = Partial<Pick<Setting, 'read' | 'list'>> & { readonly flag?: [placeholder: string, help: string] };

/** A variable for a key of the file, or for none. Its rule is that of the key. */
function setting(name: string, key: string | null, { read = ok, list = false, flag }: More = {}): Setting {
  const path = key?.split('.') ?? null;
  const node = path?.reduce<SchemaNode | undefined>((at, step) => at?.properties?.[step], FileSchema) ?? {};
  const word = name.toLowerCase().replaceAll('_', '-');
  const camel = word.replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
  const named = flag && { name: `--${word}`, key: camel, placeholder: flag[0], help: flag[1] };
  return { variable: `${PREFIX}${name}`, node, path, flag: named ?? null, read, list };
}

/** The same with a rule of its own: any text, such as the example. The template says what it is for. */
const text =
  (name: string, key: string | null, example: string, more?: More) =>
  (says: TemplateStringsArray): Setting => {
    const node = { type: 'string', description: joined(says), minLength: 1, examples: [example] };
    return { ...setting(name, key, more), node };
  };

const split = (text: unknown) => String(text).split(',');
const readList = (value: unknown) => ok(split(value).map((entry) => entry.trim()));

/** A name before the dash: -1 is a mistake and no pod. */
const ORDINAL = /^(?:[^-].*-)?(\d{1,3})$/;
const SHARD = /^(?:[^/-][^/]*-)?(\d{1,3})\/(\d{1,4})$/;

/** `2` and `killswitchd-2`, the name of a StatefulSet's pod, both as 2. */
function readOrdinal(value: unknown): Checked<number> {
  const [, ordinal] = ORDINAL.exec(String(value)) ?? [];
  const allowed = 'a whole number from 0 to 999, or a name that ends in -NUMBER, such as killswitchd-2';
  return ordinal === undefined ? wrong(`found ${describe(value)}; allowed: ${allowed}`) : ok(Number(ordinal));
}

/** `2/4`, or `killswitchd-2/4`, as the file would have it. */
function readShard(value: unknown): Checked<unknown> {
  const [, index = 0, count = 0] = (SHARD.exec(String(value)) ?? []).map(Number);
  if (index < count) return ok({ index, count });
  const allowed = `found ${describe(value)}; allowed: I/N with I from 0 to N - 1, such as 2/4`;
  const hint = `: shards are counted from 0, and the last of ${count} is ${count - 1}/${count}`;
  return wrong(count > 0 ? `${allowed}${hint}` : allowed);
}

/** `BTC_USDT:60:spot+margin` as the file would have it. What does not fit stays a text, and is refused as a market. */
function readMarket(written: string): unknown {
  const entry = written.trim();
  const [market, seconds = '', types = '', ...rest] = entry.split(':');
  if (rest.length > 0 || market === entry) return entry;
  return {
    market,
    ...(seconds === '' ? {} : { timeoutSeconds: /^\d+$/.test(seconds) ? Number(seconds) : seconds }),
    ...(types === '' ? {} : { types: types.split('+') }),
  };
}

const SOCKET = 'unix:/run/killswitchd/control.sock';

/** Every variable, in the order of the messages. */
export const SETTINGS: readonly Setting[] = [
  text('CONFIG', null, '/etc/killswitchd/killswitchd.yaml', {
    flag: ['file', 'configuration file, YAML or JSON'],
  })`
    Name of the configuration file.`,
  text('API_KEY', null, 'an-api-key')`
    API key. Rather use the form with _FILE.`,
  text('API_KEY_FILE', null, '/run/secrets/api-key')`
    Name of a file that holds the API key.`,
  text('API_KEY_SOURCE', null, '/etc/killswitchd/main.key')`
    File of which that of KILLSWITCHD_API_KEY_FILE is a copy that the service manager makes at a start. Where it is
    newer, a reload is refused: restart the service.`,
  text('API_SECRET', null, 'an-api-secret')`
    API secret. Rather use the form with _FILE.`,
  text('API_SECRET_FILE', null, '/run/secrets/api-secret')`
    Name of a file that holds the API secret.`,
  text('API_SECRET_SOURCE', null, '/etc/killswitchd/main.secret')`
    The same for KILLSWITCHD_API_SECRET_FILE.`,
  text('BASE_URL', 'exchange.baseUrls', 'https://exchange.example', { read: (value) => ok([value]) })`
    Base address; instead of exchange.baseUrls.`,
  text('MARKETS', 'markets', 'BTC_USDT:60:spot+margin,ETH_USDT', {
    flag: ['list', 'markets as MARKET[:SECONDS[:TYPE+TYPE]],... instead of those of the file; repeatable'],
    list: true,
    read: (value) => ok(split(value).map(readMarket)),
  })`
    Markets as MARKET[:SECONDS[:TYPE+TYPE]], separated by commas; instead of all markets of the file. Empty SECONDS take
    the default.`,
  setting('TIMEOUT_SECONDS', 'defaults.timeoutSeconds', {
    flag: ['seconds', 'timeout of markets that give none'],
  }),
  setting('LIVENESS_MODE', 'liveness.mode', { flag: ['mode', 'how the daemon knows that the bot lives'] }),
  setting('LIVENESS_FILE', 'liveness.file'),
  setting('LIVENESS_URL', 'liveness.url'),
  text('SHARD', 'shard', '2/4', {
    flag: [
      'i/n',
      'guard the markets of shard I of N only, counted from 0; I may be the name of a StatefulSet pod',
    ],
    read: readShard,
  })`
    Which shard of how many, I/N, counted from 0; I may be the name of a StatefulSet pod. Instead of shard.index and
    shard.count.`,
  text('SHARD_INDEX', 'shard.index', 'killswitchd-2', { read: readOrdinal })`
    Which shard this daemon is, counted from 0, or the name of a StatefulSet pod, which ends in it.`,
  setting('SHARD_COUNT', 'shard.count'),
  setting('SHUTDOWN_POLICY', 'shutdown.policy', { flag: ['policy', 'what a stop does with the timers'] }),
  text('WEB_LISTEN', 'web.listen', '0.0.0.0:17477', {
    flag: ['host:port', 'address of status page, health and metrics; repeatable'],
    list: true,
    read: readList,
  })`
    Addresses of the web listener, separated by commas.`,
  text('CONTROL_LISTEN', 'control.listen', SOCKET, {
    flag: ['address', 'unix:/PATH or HOST:PORT, where bots and commands reach the daemon; repeatable'],
    list: true,
    read: readList,
  })`
    Addresses of the control listener, separated by commas.`,
  setting('CONTROL_ACCESS', 'control.access'),
  setting('CONTROL_TOKEN_FILE', 'control.tokenFile'),
  setting('NOTIFY_URL_FILE', 'notify.urlFile'),
  setting('NOTIFY_PING_URL_FILE', 'notify.pingUrlFile'),
  setting('LOG_LEVEL', 'log.level', { flag: ['level', 'the least important lines that are written'] }),
  setting('LOG_FORMAT', 'log.format', { flag: ['format', 'how the lines of the log are written'] }),
  text('CONTROL', null, SOCKET)`
    Where commands such as status, and bots, find the daemon: unix:/PATH or HOST:PORT. The daemon itself does not read
    it.`,
  text('BOT', null, 'default')`
    Name under which a bot beats; for the example clients. The daemon itself does not read it.`,
];

/** The environment variables that the daemon reads: what is checked and what `killswitchd schema env` prints. */
export const EnvironmentSchema = {
  type: 'object',
  properties: Object.fromEntries(SETTINGS.map(({ variable, node }) => [variable, node])),
  additionalProperties: false,
  description: 'Environment of killswitchd.',
};

/**
 * What the environment says. Of `KILLSWITCHD_*` everything must be known, but for what Kubernetes tells every container
 * about the services of its namespace: `KILLSWITCHD_WEB_SERVICE_HOST` comes of one named `killswitchd-web`.
 */
export function readEnvironment(environment: Environment): Layer {
  const names = Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX))
    .sort();
  const services = names.flatMap((name) => /^([A-Z0-9_]+)_SERVICE_HOST$/.exec(name)?.[1] ?? []);
  const links = services.map((service) => new RegExp(`^${service}_(SERVICE_(HOST|PORT)|PORT)(_|$)`));
  const isOurs = (name: string) => !SECRET_VARIABLES.includes(name) && !links.some((link) => link.test(name));
  const given = names.filter(isOurs).map((name): [string, unknown] => [name, environment[name]]);
  return readOuter('environment', given);
}

/** The unknown variables of the environment: a misspelt one for an address would leave the usual address in force. */
export function findUnknown(environment: Environment): readonly Problem[] {
  const isUnknown = ({ path: [name] = [] }: Problem) =>
    String(name).startsWith(PREFIX) && SETTINGS.every(({ variable }) => variable !== name);
  return readEnvironment(environment).problems.filter(isUnknown);
}

export function readFlags(flags: Flags): Layer {
  const given = SETTINGS.map(({ variable, flag }): [string, unknown] => [variable, flag && flags[flag.key]]);
  return readOuter('flag', given);
}

/** More entries than any list has: the order within a variable must not run into the next variable. */
const MOST_ENTRIES = 1e6;

/** Null and undefined count as not given. */
function readOuter(source: 'flag' | 'environment', given: [string, unknown][]): Layer {
  const texts = given.filter(([, text]) => text != null);
  const variables = Object.fromEntries(texts.map(([name, text]) => [name, String(text)]));
  const nameOf = ({ variable, flag }: Setting) => (source === 'flag' && flag !== null ? flag.name : variable);
  const placeAt = (one: Setting | undefined, path: Path, inside: Path = []): Place => ({
    label: formatPath(one === undefined ? path : [nameOf(one), ...inside]),
    rank: RANK[source],
    offset: (one ? SETTINGS.indexOf(one) : SETTINGS.length) + (Number(inside[0]) || 0) / MOST_ENTRIES,
  });
  const checked = validate(variables, EnvironmentSchema, PREFIX);
  const problems: Problem[] = [];
  const refuse = (one: Setting | undefined, path: Path, text: string) =>
    problems.push({ place: placeAt(one, path), path: one?.path ?? path, text });
  const settingOf = (name: unknown) => SETTINGS.find(({ variable }) => variable === name);
  for (const { path, text } of checked.mistakes) refuse(settingOf(path[0]), path, text);
  const known = SETTINGS.filter(({ variable }) => checked.values[variable] !== undefined);
  const written: Tree = {};
  for (const one of known) {
    const { path } = one;
    if (path === null) continue;
    const isPart = (other: Setting) => other !== one && path.every((step, at) => step === other.path?.[at]);
    const beside = known.find(isPart);
    const [section = '', key] = path;
    const value = one.read(checked.values[one.variable]);
    if (beside !== undefined)
      refuse(one, path, `found beside ${beside.variable}, which says the same; allowed: one of the two`);
    else if (value.kind === 'wrong') refuse(one, path, value.text);
    else if (key === undefined) written[section] = value.value;
    else written[section] = { ...(written[section] as Tree), [key]: value.value };
  }
  const layer = checkLayer(source, written, (path) => {
    const one = SETTINGS.find((other) => other.path?.every((step, at) => step === path[at]));
    return placeAt(one, path, one?.list === true ? path.slice(one.path?.length) : []);
  });
  return { ...layer, problems: [...problems, ...layer.problems] };
}
