import type { Config } from './config.ts';
import { type Layer, layerOf, type Source } from './layer.ts';
import { formatPath, type Path } from './problem.ts';
import { FileSchema } from './schema.ts';
import type { SchemaNode } from './wording.ts';

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
