import { stringify } from 'yaml';
import type { Config } from './config.ts';
import { meaninglessKeys } from './meaning.ts';
import { formatPath, type Path } from './problem.ts';
import { FileSchema, type SchemaNode } from './schema.ts';
import { type Layer, layerOf, type Source } from './validate.ts';

/** By path, in the order of the file. */
export type Sources = ReadonlyMap<string, Source>;

/** The sections of a configuration whose values `--print` shows, in the order of the file. */
export const PRINTED = [
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
export function keysOf(section: keyof typeof FileSchema.properties): string[] {
  const node: SchemaNode = FileSchema.properties[section];
  return Object.keys(node.properties ?? {});
}

/** Where every value of `config` came from. A market's inherited value has the source that its default has. */
export function findSources(config: Config, layers: readonly Layer[]): Sources {
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
