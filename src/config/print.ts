import { stringify } from 'yaml';
import { asText, type Config, MEANINGLESS_KEYS } from './config.ts';
import type { LoadedConfig } from './load.ts';
import { formatPath, type Path, type Tree } from './problem.ts';
import { FileSchema, type SchemaNode } from './schema.ts';
import { layerOf, type Source } from './validate.ts';

/** Which source each value came from, by its path, in the order of the file. */
export type Sources = ReadonlyMap<string, Source>;

type Valued = readonly [path: Path, value: unknown];

/** Every value with its path, in the order of the schema. */
function valuesOf(config: Config): Valued[] {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  return Object.entries(sections).flatMap(([section, { properties }]): Valued[] => {
    if (section === 'markets')
      return config.fleet.flatMap((market, index) =>
        Object.entries(market).map(([key, value]) => [[section, index, key], value]),
      );
    const value: unknown = config[section as keyof Config];
    if (properties !== undefined)
      return Object.keys(properties).map((key) => [[section, key], (value as Tree)[key]]);
    return value === undefined ? [] : [[[section], value]];
  });
}

/** Which source each value came from. A market's inherited value has the source that its default has. */
export function findSources({ config, layers }: Pick<LoadedConfig, 'config' | 'layers'>): Sources {
  const sourceOf = (path: Path): Source => layerOf(layers, path)?.source ?? 'default';
  const markets = layers.filter(({ source }) => source === sourceOf(['markets']));
  const sourceOfMarket = (path: Path, key: string | number): Source =>
    layerOf(markets, path)?.source ?? sourceOf(key === 'market' ? ['markets'] : ['defaults', key]);
  return new Map(
    valuesOf(config).map(([path]) => {
      const [, , key] = path;
      return [formatPath(path), key === undefined ? sourceOf(path) : sourceOfMarket(path, key)];
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
  const idle: readonly string[] = MEANINGLESS_KEYS[config.liveness.mode];
  const { apiKey, apiSecret } = config.secrets;
  const lines = [`# apiKey: ${String(apiKey)}`, `# apiSecret: ${String(apiSecret)}`];
  let last: Path[number] | undefined;
  for (const [path, value] of valuesOf(config)) {
    const [section, inside] = path;
    const key = String(path.at(-1));
    if (inside !== undefined && section !== last) lines.push(`${section}:`);
    last = section;
    const lead = ['', '', '  ', key === 'market' ? '  - ' : '    '][path.length];
    const source = sources.get(formatPath(path)) ?? 'default';
    const listed: unknown = Array.isArray(value) ? value.map(asText) : value;
    const written = stringify(listed, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd();
    const text = written.includes('\n') ? JSON.stringify(listed) : written;
    if (value === null || (key === 'baseUrls' && config.exchange.baseUrls.length === 0))
      lines.push(`${lead}# ${key}: ${ABSENT[key]} (${source})`);
    else if (section === 'liveness' && idle.includes(key))
      lines.push(`${lead}# ${key}: ${text}, of no meaning with this mode (${source})`);
    else lines.push(`${lead}${key}: ${text} # ${source}`);
  }
  return lines;
}
