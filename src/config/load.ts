import { hideSecrets } from '../util/redact.ts';
import { type Config, marketsOf, type Settled } from './config.ts';
import { type Flags, readEnvironment, readFlags } from './environment.ts';
import { readConfigFile } from './file.ts';
import { type Command, checkMeaning, findWarnings, type Meaning } from './meaning.ts';
import { findSources, type Sources } from './print.ts';
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
import { checkLayer, type Layer, layerOf } from './validate.ts';

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
