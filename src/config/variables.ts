import { Type } from './json-schema.ts';
import { DefaultsSchema } from './market-schema.ts';
import { FileSchema } from './schema.ts';
import { readOrdinal, readShard, refuseOrdinal, refuseShard } from './shard.ts';

const { shard, liveness, shutdown, control, log } = FileSchema.properties;

const text = (description: string, example: string) =>
  Type.Optional(Type.String({ description, minLength: 1, examples: [example] }));

/** The environment variables that the daemon reads: what is checked and what `killswitchd schema env` prints. */
export const EnvironmentSchema = Type.Object(
  {
    KILLSWITCHD_CONFIG: text('Name of the configuration file.', '/etc/killswitchd/killswitchd.yaml'),
    KILLSWITCHD_API_KEY: text('API key. Rather use the form with _FILE.', 'an-api-key'),
    KILLSWITCHD_API_KEY_FILE: text('Name of a file that holds the API key.', '/run/secrets/api-key'),
    KILLSWITCHD_API_SECRET: text('API secret. Rather use the form with _FILE.', 'an-api-secret'),
    KILLSWITCHD_API_SECRET_FILE: text('Name of a file that holds the API secret.', '/run/secrets/api-secret'),
    KILLSWITCHD_BASE_URL: text('Base address; instead of exchange.baseUrls.', 'https://exchange.example'),
    KILLSWITCHD_MARKETS: text(
      'Markets as MARKET[:SECONDS[:TYPE+TYPE]], separated by commas; instead of all markets of the file. Empty SECONDS take the default.',
      'BTC_USDT:60:spot+margin,ETH_USDT',
    ),
    KILLSWITCHD_TIMEOUT_SECONDS: DefaultsSchema.properties.timeoutSeconds,
    KILLSWITCHD_LIVENESS_MODE: liveness.properties.mode,
    KILLSWITCHD_LIVENESS_FILE: liveness.properties.file,
    KILLSWITCHD_LIVENESS_URL: liveness.properties.url,
    KILLSWITCHD_SHARD: text(
      'Which shard of how many, I/N, counted from 0; I may be the name of a StatefulSet pod. Instead of shard.index and shard.count.',
      '2/4',
    ),
    KILLSWITCHD_SHARD_INDEX: text(
      'Which shard this daemon is, counted from 0, or the name of a StatefulSet pod, which ends in it.',
      'killswitchd-2',
    ),
    KILLSWITCHD_SHARD_COUNT: shard.properties.count,
    KILLSWITCHD_SHUTDOWN_POLICY: shutdown.properties.policy,
    KILLSWITCHD_WEB_LISTEN: text(
      'Addresses of the read-only listener, separated by commas.',
      '0.0.0.0:17477',
    ),
    KILLSWITCHD_CONTROL_LISTEN: text(
      'Addresses of the control listener, separated by commas.',
      'unix:/run/killswitchd/control.sock',
    ),
    KILLSWITCHD_CONTROL_ACCESS: control.properties.access,
    KILLSWITCHD_CONTROL_TOKEN_FILE: control.properties.tokenFile,
    KILLSWITCHD_LOG_LEVEL: log.properties.level,
    KILLSWITCHD_LOG_FORMAT: log.properties.format,
    KILLSWITCHD_CONTROL: text(
      'Where commands such as status, and bots, find the daemon: unix:/PATH or HOST:PORT. The daemon itself does not read it.',
      'unix:/run/killswitchd/control.sock',
    ),
    KILLSWITCHD_BOT: text(
      'Name under which a bot beats; for the example clients. The daemon itself does not read it.',
      'default',
    ),
  },
  { additionalProperties: false, description: 'Environment of killswitchd.' },
);

export type Variable = keyof typeof EnvironmentSchema.properties;

/** The JSON Schema (draft-07) of the environment, as `killswitchd schema env` prints it. */
export function publishedEnvironmentSchema(): object {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'killswitchd environment',
    ...EnvironmentSchema,
  };
}

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
  readonly logLevel?: string | undefined;
  readonly logFormat?: string | undefined;
  /** The daemon brings its own exchange: base address, key and secret may be missing. */
  readonly embeddedExchange?: boolean | undefined;
}

/** One thing that a variable, and often a flag, can say instead of the file. */
export interface Setting {
  readonly variable: Variable;
  readonly flag: { readonly name: string; readonly key: Exclude<keyof Flags, 'embeddedExchange'> } | null;
  /** The key of the file that it replaces; null for the file's own name. */
  readonly path: readonly string[] | null;
  /** The value as the file would have it. */
  readonly read: (value: unknown) => unknown;
  /** Positions in a list may be named in a message. */
  readonly list: boolean;
  /** What is wrong with a value that `read` does not understand; null where nothing is. */
  readonly refuse?: (value: string) => string | null;
  /** Variables that say a part of the same. */
  readonly insteadOf?: readonly Variable[];
}

const asIs = (value: unknown) => value;
const asOne = (value: unknown) => [value];
const asList = (value: unknown) =>
  String(value)
    .split(',')
    .map((entry) => entry.trim());

/** Every variable but those of the secrets, in the order of their messages. */
export const SETTINGS: readonly Setting[] = [
  {
    variable: 'KILLSWITCHD_CONFIG',
    flag: { name: '--config', key: 'config' },
    path: null,
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_BASE_URL',
    flag: null,
    path: ['exchange', 'baseUrls'],
    read: asOne,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_MARKETS',
    flag: { name: '--markets', key: 'markets' },
    path: ['markets'],
    read: (value) => asList(value).map(readMarket),
    list: true,
  },
  {
    variable: 'KILLSWITCHD_TIMEOUT_SECONDS',
    flag: { name: '--timeout-seconds', key: 'timeoutSeconds' },
    path: ['defaults', 'timeoutSeconds'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_SHARD',
    flag: { name: '--shard', key: 'shard' },
    path: ['shard'],
    read: readShard,
    list: false,
    refuse: refuseShard,
    insteadOf: ['KILLSWITCHD_SHARD_INDEX', 'KILLSWITCHD_SHARD_COUNT'],
  },
  {
    variable: 'KILLSWITCHD_SHARD_INDEX',
    flag: null,
    path: ['shard', 'index'],
    read: readOrdinal,
    list: false,
    refuse: refuseOrdinal,
  },
  {
    variable: 'KILLSWITCHD_SHARD_COUNT',
    flag: null,
    path: ['shard', 'count'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_LIVENESS_MODE',
    flag: { name: '--liveness-mode', key: 'livenessMode' },
    path: ['liveness', 'mode'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_LIVENESS_FILE',
    flag: null,
    path: ['liveness', 'file'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_LIVENESS_URL',
    flag: null,
    path: ['liveness', 'url'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_SHUTDOWN_POLICY',
    flag: { name: '--shutdown-policy', key: 'shutdownPolicy' },
    path: ['shutdown', 'policy'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_WEB_LISTEN',
    flag: { name: '--web-listen', key: 'webListen' },
    path: ['web', 'listen'],
    read: asList,
    list: true,
  },
  {
    variable: 'KILLSWITCHD_CONTROL_LISTEN',
    flag: null,
    path: ['control', 'listen'],
    read: asList,
    list: true,
  },
  {
    variable: 'KILLSWITCHD_CONTROL_ACCESS',
    flag: null,
    path: ['control', 'access'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_CONTROL_TOKEN_FILE',
    flag: null,
    path: ['control', 'tokenFile'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_LOG_LEVEL',
    flag: { name: '--log-level', key: 'logLevel' },
    path: ['log', 'level'],
    read: asIs,
    list: false,
  },
  {
    variable: 'KILLSWITCHD_LOG_FORMAT',
    flag: { name: '--log-format', key: 'logFormat' },
    path: ['log', 'format'],
    read: asIs,
    list: false,
  },
];

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
