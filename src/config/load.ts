import { stringify } from 'yaml';
import { hideSecrets } from '../util/redact.ts';
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
import { type Environment, findSecrets, findSharedKey, readTokenFile, type Secret } from './secrets.ts';
import { checkLayer, type Layer, layerOf, type Source } from './validate.ts';

export type Loaded =
  | {
      readonly kind: 'ok';
      readonly config: Config;
      /** SHA-256 of the bytes of its file, in hex; null without one. */
      readonly fileHash: string | null;
      /** Sentences about what is allowed and yet worth a thought. */
      readonly warnings: readonly string[];
      /** Which source each value came from, by its path: `markets[0].timeoutSeconds`. */
      readonly sources: Sources;
    }
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
  const { tokenFile } = values.control;
  const token = tokenFile === undefined ? null : readTokenFile(tokenFile);
  if (token?.kind === 'wrong') problems.push({ place: placeIn(layers, TOKEN_FILE), text: token.text });
  const tokenSecret = token?.kind === 'ok' ? token.secret : null;
  const shared = findSharedKey(secrets, values.shard, env);
  if (shared !== null) problems.push(shared);
  const { apiKey, apiSecret } = secrets;
  const { liveness } = meaning;
  if (problems.length > 0 || apiKey === null || apiSecret === null || liveness === null) {
    return invalid(problems, [...known, tokenSecret], env);
  }

  const config = settle(values, meaning, {
    name,
    embeddedExchange,
    liveness,
    secrets: { apiKey, apiSecret },
    token: tokenSecret,
  });
  const isWritten = (path: Path) => (layerOf(layers, path)?.source ?? 'default') !== 'default';
  const warnings = [
    ...secrets.warnings,
    ...(token?.kind === 'ok' && token.warning !== null ? [`control.tokenFile: ${token.warning}`] : []),
    ...findWarnings(config, isWritten, command ?? null),
  ];
  return { kind: 'ok', config, fileHash: file?.hash ?? null, warnings, sources: findSources(config, layers) };
}

interface Given {
  readonly name: string | null;
  readonly embeddedExchange: boolean;
  readonly liveness: Config['liveness'];
  readonly secrets: Config['secrets'];
  readonly token: Secret | null;
}

function settle(values: Settled, meaning: Meaning, given: Given): Config {
  return {
    file: given.name,
    embeddedExchange: given.embeddedExchange,
    exchange: { ...values.exchange, baseUrls: meaning.baseUrls },
    secrets: given.secrets,
    defaults: {
      timeoutSeconds: values.defaults.timeoutSeconds,
      types: values.defaults.types ?? null,
      renewEverySeconds: values.defaults.renewEverySeconds ?? null,
    },
    markets: marketsOf(values.shard, meaning.markets),
    fleet: meaning.markets,
    shard: values.shard,
    liveness: given.liveness,
    onLapse: values.onLapse,
    shutdown: values.shutdown,
    ping: values.ping,
    web: { listen: meaning.webListen },
    control: {
      access: values.control.access,
      listen: meaning.controlListen,
      tokenFile: values.control.tokenFile ?? null,
      token: given.token,
    },
    reload: values.reload,
    log: values.log,
  };
}

const TOKEN_FILE: Path = ['control', 'tokenFile'];

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

/** By path, in the order of the file. */
export type Sources = ReadonlyMap<string, Source>;

/** The sections of a configuration whose values `--print` shows, in the order of the file. */
const PRINTED = [
  'exchange',
  'defaults',
  'markets',
  'shard',
  'liveness',
  'onLapse',
  'shutdown',
  'ping',
  'web',
  'control',
  'reload',
  'log',
] as const satisfies readonly (keyof Config)[];

/** The keys of a section in the order of the schema. */
function keysOf(section: keyof typeof FileSchema.properties): string[] {
  const node: SchemaNode = FileSchema.properties[section];
  return Object.keys(node.properties ?? {});
}

/** Where every value of `config` came from. A market's inherited value has the source that its default has. */
function findSources(config: Config, layers: readonly Layer[]): Sources {
  const sources = new Map<string, Source>();
  const sourceOf = (path: Path): Source => layerOf(layers, path)?.source ?? 'default';
  for (const section of PRINTED) {
    if (section === 'markets') {
      addMarkets(config, layers, sources);
      continue;
    }
    const value = config[section];
    if (typeof value === 'string') {
      sources.set(section, sourceOf([section]));
      continue;
    }
    for (const key of keysOf(section)) sources.set(formatPath([section, key]), sourceOf([section, key]));
  }
  return sources;
}

function addMarkets(config: Config, layers: readonly Layer[], sources: Map<string, Source>): void {
  const given = layerOf(layers, ['markets']);
  config.fleet.forEach((market, index) => {
    for (const key of Object.keys(market)) {
      const path: Path = ['markets', index, key];
      const own = given !== undefined && (key === 'market' || layerOf([given], path) !== undefined);
      const inherited = layerOf(layers, ['defaults', key])?.source ?? 'default';
      sources.set(formatPath(path), own ? given.source : inherited);
    }
  });
}

/**
 * The merged configuration as YAML that could itself be a configuration file, each value with its source in a comment.
 * Secrets are comments, and redacted.
 */
export function printConfig(config: Config, sources: Sources): string[] {
  const idle = new Set<string>(
    meaninglessKeys(config.liveness.mode).map((key) => formatPath(['liveness', key])),
  );
  const lines = [
    `# apiKey: ${String(config.secrets.apiKey)}`,
    `# apiSecret: ${String(config.secrets.apiSecret)}`,
  ];
  for (const section of PRINTED) {
    const value = config[section];
    if (typeof value === 'string') {
      lines.push(printValue(section, section, value, sources));
    } else if (section === 'markets') {
      lines.push('markets:');
      config.fleet.forEach((market, index) => {
        Object.entries(market).forEach(([key, own], position) => {
          const path = formatPath(['markets', index, key]);
          lines.push(`  ${position === 0 ? '-' : ' '} ${printValue(path, key, own, sources)}`);
        });
      });
    } else {
      lines.push(`${section}:`);
      const values = new Map<string, unknown>(Object.entries(value));
      for (const key of keysOf(section)) {
        const path = formatPath([section, key]);
        lines.push(`  ${printValue(path, key, values.get(key), sources, idle.has(path))}`);
      }
    }
  }
  return lines;
}

/** What it means that a value is not there; there is no way to write it. */
const ABSENT: Readonly<Record<string, string>> = {
  types: 'all order types',
  renewEverySeconds: 'follows from the timeout',
  baseUrls: 'the embedded exchange',
  file: 'for mode file only',
  url: 'for mode http only',
  tokenFile: 'no token',
};

/** An idle value is one that the chosen mode does not use: written out, it would be warned about. */
function printValue(path: string, key: string, value: unknown, sources: Sources, idle = false): string {
  const source = sources.get(path) ?? 'default';
  const listed: unknown = Array.isArray(value) ? value.map(asText) : value;
  if (value === null || (key === 'baseUrls' && Array.isArray(value) && value.length === 0)) {
    return `# ${key}: ${ABSENT[key]} (${source})`;
  }
  const text = stringify(listed, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd();
  if (idle) return `# ${key}: ${text}, of no meaning with this mode (${source})`;
  return `${key}: ${text} # ${source}`;
}

function asText(entry: unknown): unknown {
  return typeof entry === 'object' && entry !== null && 'text' in entry ? entry.text : entry;
}
