import { stringify } from 'yaml';
import { hideSecrets } from '../util/text.ts';
import { findUrlFlaw } from './addresses.ts';
import { type Config, marketsOf, type Settled } from './config.ts';
import { type Flags, readEnvironment, readFlags } from './environment.ts';
import { readConfigFile } from './file.ts';
import { type Command, checkMeaning, findWarnings, type Meaning, meaninglessKeys } from './meaning.ts';
import {
  formatPath,
  isTree,
  listProblems,
  type Path,
  type Place,
  type Problem,
  RANK,
  showProblems,
  type Tree,
} from './problem.ts';
import { FileSchema, type SchemaNode } from './schema.ts';
import {
  type Environment,
  findSecrets,
  findSharedKey,
  readTokenFile,
  readUrlFile,
  type Secret,
} from './secrets.ts';
import { checkLayer, type Layer, layerOf, type Source } from './validate.ts';

/** A configuration that can be used. */
export interface LoadedConfig {
  readonly kind: 'ok';
  readonly config: Config;
  /** SHA-256 of the bytes of its file, in hex; null without one. */
  readonly fileHash: string | null;
  /** Sentences about what is allowed and yet worth a thought. */
  readonly warnings: readonly string[];
  /** Which source each value came from, by its path: `markets[0].timeoutSeconds`. */
  readonly sources: Sources;
}

export type Loaded =
  | LoadedConfig
  | {
      readonly kind: 'invalid';
      /** One line per mistake: where, what was found, what is allowed, what was probably meant. Never a secret. */
      readonly problems: readonly string[];
      /** The same for a terminal: with the line of the file, and a mark under what is wrong. */
      readonly shown: readonly string[];
    };

export interface LoadOptions {
  readonly env: Environment;
  readonly flags: Flags;
  /** What the configuration is for; left out where it is only looked at. `exec` needs no liveness mode. */
  readonly command?: Command;
}

/**
 * Flags over environment over file over defaults. Reads the file that `--config` or `KILLSWITCHD_CONFIG` names and the
 * files of the secrets, and nothing else; without such a file the environment alone must be enough. Reports all
 * mistakes at once.
 */
export function loadConfig({ env, flags, command }: LoadOptions): Loaded {
  const embeddedExchange = flags.embeddedExchange === true;
  const secrets = findSecrets(env, { demo: embeddedExchange });
  const flagLayer = readFlags(flags);
  const environmentLayer = readEnvironment(env);
  const outer = [flagLayer, environmentLayer];
  const problems: Problem[] = [...outer.flatMap((layer) => layer.problems), ...secrets.problems];

  const name = flagLayer.config === null ? environmentLayer.config : flagLayer.config;
  const file = name == null ? null : readConfigFile(name);
  if (file !== null) problems.push(...file.problems);
  // Without knowing what the file says, everything that it may say would be called missing.
  const known = [secrets.apiKey, secrets.apiSecret];
  if (name === undefined || file?.values === null) return invalid(problems, known, env);

  const fileLayer = file === null ? [] : [checkLayer('file', file.values, file.place)];
  problems.push(...fileLayer.flatMap((layer) => layer.problems));
  const layers: Layer[] = [...outer, ...fileLayer, defaultLayer()];
  const values = mergeLayers(layers) as unknown as Settled;
  const mistaken = layers.flatMap((layer) => layer.mistaken);
  const meaning = checkMeaning(values, {
    embeddedExchange,
    command: command ?? null,
    labelOf: (path) => placeIn(layers, path).label,
    isMistaken: (path) => mistaken.some((one) => isOnSameBranch(one, path)),
  });
  problems.push(...placeMeaning(meaning, layers));
  const fileWarnings: string[] = [];
  const readFrom = (path: Path, file: string | undefined, read: typeof readTokenFile): Secret | null => {
    const found = file === undefined ? null : read(file);
    if (found?.kind === 'wrong') problems.push({ place: placeIn(layers, path), text: found.text });
    if (found?.kind !== 'ok') return null;
    if (found.warning !== null) fileWarnings.push(`${formatPath(path)}: ${found.warning}`);
    return found.secret;
  };
  const { urlFile, pingUrlFile, format } = values.notify;
  const token = readFrom(['control', 'tokenFile'], values.control.tokenFile, readTokenFile);
  const url = readFrom(['notify', 'urlFile'], urlFile, (file) =>
    readUrlFile(file, (text) => findUrlFlaw(text, format === 'telegram')),
  );
  const pingUrl = readFrom(['notify', 'pingUrlFile'], pingUrlFile, (file) =>
    readUrlFile(file, (text) => findUrlFlaw(text, false)),
  );
  const shared = findSharedKey(secrets, values.shard, env);
  if (shared !== null) problems.push(shared);
  const { apiKey, apiSecret } = secrets;
  const { liveness } = meaning;
  if (problems.length > 0 || apiKey === null || apiSecret === null || liveness === null) {
    return invalid(problems, [...known, token, url, pingUrl], env);
  }

  const of = { file: name, embeddedExchange, liveness, secrets: { apiKey, apiSecret } };
  const config = settle(values, meaning, { ...of, token, url, pingUrl });
  const isWritten = (path: Path) => (layerOf(layers, path)?.source ?? 'default') !== 'default';
  const warnings = [
    ...secrets.warnings,
    ...fileWarnings,
    ...findWarnings(config, isWritten, command ?? null),
  ];
  return { kind: 'ok', config, fileHash: file?.hash ?? null, warnings, sources: findSources(config, layers) };
}

type Given = Pick<Config, 'file' | 'embeddedExchange' | 'liveness' | 'secrets'> & {
  readonly token: Secret | null;
  readonly url: Secret | null;
  readonly pingUrl: Secret | null;
};

function settle(values: Settled, meaning: Meaning, { token, url, pingUrl, ...given }: Given): Config {
  const { exchange, defaults, shard, onLapse, shutdown, ping, reload, log, control, notify } = values;
  return {
    ...given,
    exchange: { ...exchange, baseUrls: meaning.baseUrls },
    defaults: {
      timeoutSeconds: defaults.timeoutSeconds,
      types: defaults.types ?? null,
      renewEverySeconds: defaults.renewEverySeconds ?? null,
    },
    markets: marketsOf(shard, meaning.markets),
    fleet: meaning.markets,
    shard,
    onLapse,
    shutdown,
    ping,
    web: { listen: meaning.webListen },
    control: { ...control, listen: meaning.controlListen, tokenFile: control.tokenFile ?? null, token },
    notify: {
      ...notify,
      urlFile: notify.urlFile ?? null,
      url,
      pingUrlFile: notify.pingUrlFile ?? null,
      pingUrl,
    },
    reload,
    log,
  };
}

function placeMeaning(meaning: Meaning, layers: readonly Layer[]): Problem[] {
  return [
    ...meaning.mistakes.map(({ path, text }) => ({ place: placeIn(layers, path), text })),
    ...meaning.missing.map(({ path, text }, offset) => ({
      place: { label: formatPath(path), rank: RANK.missing, offset },
      text,
    })),
  ];
}

function placeIn(layers: readonly Layer[], path: Path): Place {
  return layerOf(layers, path)?.place(path) ?? { label: formatPath(path), rank: RANK.missing, offset: 0 };
}

function isOnSameBranch(one: Path, other: Path): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).every((step, index) => step === other[index]);
}

/** The messages. A secret that was also written where it does not belong is blanked out of them. */
function invalid(
  problems: readonly Problem[],
  secrets: readonly (Secret | null)[],
  env: Environment,
): Loaded {
  const known = [
    ...secrets.map((secret) => secret?.reveal()),
    env.KILLSWITCHD_API_KEY,
    env.KILLSWITCHD_API_SECRET,
  ].filter((secret) => secret !== undefined);
  const hide = (line: string) => hideSecrets(line, known);
  return {
    kind: 'invalid',
    problems: listProblems(problems).map(hide),
    shown: showProblems(problems).map(hide),
  };
}

/** What holds where nobody says otherwise: the defaults that the schema states. */
function defaultLayer(): Layer {
  return {
    source: 'default',
    values: defaultsOf(FileSchema),
    problems: [],
    mistaken: [],
    place: (path) => ({ label: formatPath(path), rank: RANK.missing, offset: 0 }),
  };
}

function defaultsOf(node: SchemaNode): Tree {
  const values: Tree = {};
  for (const [key, property] of Object.entries(node.properties ?? {})) {
    if (property.default !== undefined) values[key] = structuredClone(property.default);
    else if (property.properties !== undefined) values[key] = defaultsOf(property);
  }
  return values;
}

/** One tree out of several, the first of which wins key by key. Lists are replaced whole. */
function mergeLayers(layers: readonly Layer[]): Tree {
  const merge = (lower: Tree, upper: Tree): Tree => {
    const merged = { ...lower };
    for (const [key, value] of Object.entries(upper)) {
      const below = merged[key];
      merged[key] = isTree(value) && isTree(below) ? merge(below, value) : value;
    }
    return merged;
  };
  return layers.map(({ values }) => values).reduceRight((lower, upper) => merge(lower, upper), {});
}

/** Which source each value came from, by its path, in the order of the file. */
export type Sources = ReadonlyMap<string, Source>;

/** A line of the printed configuration that has a value. */
interface Shown {
  /** What stands before the key. */
  readonly lead: string;
  readonly path: Path;
  readonly key: string;
  readonly value: unknown;
}

/** The configuration line by line, in the order of the schema; a section begins with a line of its own. */
function linesOf(config: Config): (Shown | string)[] {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  const all = new Map<string, unknown>(Object.entries(config));
  return Object.entries(sections).flatMap(([section, node]): (Shown | string)[] => {
    const value = all.get(section);
    if (section === 'markets') return ['markets:', ...config.fleet.flatMap(linesOfMarket)];
    if (node.properties === undefined) {
      return value === undefined ? [] : [{ lead: '', path: [section], key: section, value }];
    }
    const inner = new Map<string, unknown>(Object.entries(value ?? {}));
    const lines = Object.keys(node.properties).map((key) => ({
      lead: '  ',
      path: [section, key],
      key,
      value: inner.get(key),
    }));
    return [`${section}:`, ...lines];
  });
}

function linesOfMarket(market: Config['fleet'][number], index: number): Shown[] {
  return Object.entries(market).map(([key, value], position) => ({
    lead: position === 0 ? '  - ' : '    ',
    path: ['markets', index, key],
    key,
    value,
  }));
}

/** A market's inherited value has the source that its default has. */
function findSources(config: Config, layers: readonly Layer[]): Sources {
  const sourceOf = (path: Path): Source => layerOf(layers, path)?.source ?? 'default';
  const markets = layerOf(layers, ['markets']);
  const sourceOfMarket = (path: Path, key: string): Source =>
    markets !== undefined && (key === 'market' || layerOf([markets], path) !== undefined)
      ? markets.source
      : sourceOf(['defaults', key]);
  return new Map(
    linesOf(config).flatMap((line) => {
      if (typeof line === 'string') return [];
      const { path, key } = line;
      return [[formatPath(path), path[0] === 'markets' ? sourceOfMarket(path, key) : sourceOf(path)]];
    }),
  );
}

/** What it means that a value is not there; there is no way to write it. */
const ABSENT: Readonly<Record<string, string>> = {
  types: 'all order types',
  renewEverySeconds: 'follows from the timeout',
  baseUrls: 'the embedded exchange',
  file: 'for mode file only',
  url: 'for mode http only',
  tokenFile: 'no token',
  urlFile: 'nobody is told',
  pingUrlFile: 'no pings',
};

/**
 * The merged configuration as YAML that could itself be a configuration file, each value with its source in a comment.
 * Secrets are comments, and redacted. So is what the chosen mode does not use: written out, it would be warned about.
 */
export function printConfig(config: Config, sources: Sources): string[] {
  const idle: readonly string[] = meaninglessKeys(config.liveness.mode);
  const print = ({ lead, path, key, value }: Shown): string => {
    const source = sources.get(formatPath(path)) ?? 'default';
    if (value === null || (key === 'baseUrls' && config.exchange.baseUrls.length === 0)) {
      return `${lead}# ${key}: ${ABSENT[key]} (${source})`;
    }
    const listed: unknown = Array.isArray(value) ? value.map(asText) : value;
    const text = stringify(listed, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd();
    return path[0] === 'liveness' && idle.includes(key)
      ? `${lead}# ${key}: ${text}, of no meaning with this mode (${source})`
      : `${lead}${key}: ${text} # ${source}`;
  };
  return [
    `# apiKey: ${String(config.secrets.apiKey)}`,
    `# apiSecret: ${String(config.secrets.apiSecret)}`,
    ...linesOf(config).map((line) => (typeof line === 'string' ? line : print(line))),
  ];
}

function asText(entry: unknown): unknown {
  return typeof entry === 'object' && entry !== null && 'text' in entry ? entry.text : entry;
}
