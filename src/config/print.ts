import { stringify } from 'yaml';
import { type Config, MEANINGLESS_KEYS } from './config.ts';
import type { LoadedConfig } from './load.ts';
import { formatPath, type Path } from './problem.ts';
import { FileSchema, type SchemaNode } from './schema.ts';
import { layerOf, type Source } from './validate.ts';

/** Which source each value came from, by its path, in the order of the file. */
export type Sources = ReadonlyMap<string, Source>;

/** A line of the printed configuration that has a value. */
interface Shown {
  /** What stands before the key. */
  readonly lead: string;
  readonly path: Path;
  readonly value: unknown;
}

/** The configuration line by line, in the order of the schema; a section begins with a line of its own. */
function linesOf(config: Config): (Shown | string)[] {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  const all = new Map<string, unknown>(Object.entries(config));
  return Object.entries(sections).flatMap(([section, node]): (Shown | string)[] => {
    const value = all.get(section);
    if (section === 'markets') return ['markets:', ...config.fleet.flatMap(linesOfMarket)];
    if (node.properties === undefined)
      return value === undefined ? [] : [{ lead: '', path: [section], value }];
    const inner = new Map<string, unknown>(Object.entries(value ?? {}));
    const lines = Object.keys(node.properties).map((key) => {
      return { lead: '  ', path: [section, key], value: inner.get(key) };
    });
    return [`${section}:`, ...lines];
  });
}

function linesOfMarket(market: Config['fleet'][number], index: number): Shown[] {
  return Object.entries(market).map(([key, value], position) => {
    return { lead: position === 0 ? '  - ' : '    ', path: ['markets', index, key], value };
  });
}

const keyOf = ({ path }: Shown) => String(path.at(-1));

/** Which source each value came from. A market's inherited value has the source that its default has. */
export function findSources({ config, said }: Pick<LoadedConfig, 'config' | 'said'>): Sources {
  const sourceOf = (path: Path): Source => layerOf(said, path)?.source ?? 'default';
  const markets = said.filter(({ source }) => source === sourceOf(['markets']));
  const sourceOfMarket = (line: Shown): Source =>
    layerOf(markets, line.path)?.source ??
    sourceOf(keyOf(line) === 'market' ? ['markets'] : ['defaults', keyOf(line)]);
  return new Map(
    linesOf(config)
      .filter((line) => typeof line !== 'string')
      .map((line) => [
        formatPath(line.path),
        line.path[0] === 'markets' ? sourceOfMarket(line) : sourceOf(line.path),
      ]),
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
  const print = (line: Shown): string => {
    const { lead, path, value } = line;
    const key = keyOf(line);
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
