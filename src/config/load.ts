import { type Config, type Settled } from './config.ts';
import { readConfigFile } from './config-file.ts';
import {
  checkLayer,
  defaultLayer,
  type Layer,
  layerOf,
  mergeLayers,
  readEnvironment,
  readFlags,
} from './layer.ts';
import { checkMeaning, type Meaning } from './meaning.ts';
import { formatPath, listProblems, type Path, type Place, type Problem, RANK } from './problem.ts';
import { type Environment, type FoundSecrets, findSecrets } from './secrets.ts';
import { findSources, type Sources } from './sources.ts';
import type { Flags } from './variables.ts';

export type Loaded =
  | {
      readonly kind: 'ok';
      readonly config: Config;
      /** Sentences about what is allowed and yet worth a thought. */
      readonly warnings: readonly string[];
      /** Which source each value came from, by its path: `markets[0].timeoutSeconds`. */
      readonly sources: Sources;
    }
  /** One line per mistake: where, what was found, what is allowed, what was probably meant. Never a secret. */
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

export interface LoadOptions {
  readonly env: Environment;
  readonly flags: Flags;
}

/**
 * Flags over environment over file over defaults. Reads the file that `--config` or `KILLSWITCHD_CONFIG` names and the
 * files of the secrets, and nothing else; without such a file the environment alone must be enough. Reports all
 * mistakes at once.
 */
export function loadConfig({ env, flags }: LoadOptions): Loaded {
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
  if (name === undefined || file?.values === null) return invalid(problems, secrets, env);

  const fileLayer = file === null ? [] : [checkLayer('file', file.values, file.place)];
  problems.push(...fileLayer.flatMap((layer) => layer.problems));
  const layers: Layer[] = [...outer, ...fileLayer, defaultLayer()];
  const values = mergeLayers(layers) as unknown as Settled;
  const mistaken = layers.flatMap((layer) => layer.mistaken);
  const meaning = checkMeaning(values, {
    embeddedExchange,
    labelOf: (path) => placeIn(layers, path).label,
    isMistaken: (path) => mistaken.some((one) => isOnSameBranch(one, path)),
  });
  problems.push(...placeMeaning(meaning, layers));
  const { apiKey, apiSecret } = secrets;
  if (problems.length > 0 || apiKey === null || apiSecret === null) return invalid(problems, secrets, env);

  const config: Config = {
    file: name,
    embeddedExchange,
    exchange: { ...values.exchange, baseUrls: meaning.baseUrls },
    secrets: { apiKey, apiSecret },
    defaults: {
      timeoutSeconds: values.defaults.timeoutSeconds,
      types: values.defaults.types ?? null,
      renewEverySeconds: values.defaults.renewEverySeconds ?? null,
    },
    markets: meaning.markets,
    liveness: values.liveness,
    onLapse: values.onLapse,
    shutdown: values.shutdown,
    ping: values.ping,
    web: { listen: meaning.webListen },
    control: { listen: meaning.controlListen },
    log: values.log,
  };
  const warnings = [...secrets.warnings, ...findWarnings(config, values)];
  return { kind: 'ok', config, warnings, sources: findSources(config, layers) };
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

function findWarnings(config: Config, values: Settled): string[] {
  const warnings: string[] = [];
  const { baseUrls, sameAccount } = config.exchange;
  if (config.embeddedExchange && values.exchange.baseUrls !== undefined) {
    warnings.push(
      'exchange.baseUrls: not used, since the daemon brings its own exchange (--embedded-exchange)',
    );
  }
  if (baseUrls.length > 1 && !sameAccount) {
    warnings.push(
      `exchange.baseUrls: only ${baseUrls[0]} is used for renewals, the others only with exchange.sameAccount: true`,
    );
  }
  if (config.control.listen.length > 0) {
    warnings.push(
      'control.listen: nothing listens there yet, since the control listener comes with a later version',
    );
  }
  if (config.liveness.mode === 'none') {
    warnings.push(
      'liveness.mode: none: nobody watches the bot; timers are renewed for as long as this daemon runs, even when the bot is dead',
    );
  }
  return warnings;
}

/** Shorter texts would be found inside ordinary words. */
const SHORTEST_BLANKED = 8;

/** The messages. A secret that was also written where it does not belong is blanked out of them. */
function invalid(problems: readonly Problem[], secrets: FoundSecrets, env: Environment): Loaded {
  const known = [
    secrets.apiKey?.reveal(),
    secrets.apiSecret?.reveal(),
    env.KILLSWITCHD_API_KEY,
    env.KILLSWITCHD_API_SECRET,
  ].filter((secret) => secret !== undefined && secret.length >= SHORTEST_BLANKED);
  const blank = (line: string) =>
    known.reduce<string>(
      (text, secret = '') =>
        text.replaceAll(secret, '[redacted]').replaceAll(JSON.stringify(secret).slice(1, -1), '[redacted]'),
      line,
    );
  return { kind: 'invalid', problems: listProblems(problems).map(blank) };
}
