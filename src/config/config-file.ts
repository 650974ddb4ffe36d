import { createHash } from 'node:crypto';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml';
import { formatPath, type Path, type Place, type Problem, RANK } from './problem.ts';
import { readSmallFile } from './small-file.ts';
import { isTree, type Tree } from './validate.ts';
import { describe } from './wording.ts';

const MOST_BYTES = 1024 * 1024;
/** A file may use an anchor a few times; more is a "billion laughs" bomb and not a configuration. */
const MOST_ALIASES = 100;
const NESTED = 'not usable YAML: nested too deeply';

export interface ConfigFile {
  /** Null where nothing could be read out of the file. */
  readonly values: Tree | null;
  readonly problems: readonly Problem[];
  /** SHA-256 of its bytes, in hex; null where they could not be read. */
  readonly hash: string | null;
  /** Where a value stands: the line and column of its key, or of the nearest key above it. */
  readonly place: (path: Path) => Place;
}

/** Reads and parses a YAML (or JSON) file of at most 1 MiB. Says what is wrong with the syntax, not with the values. */
export function readConfigFile(name: string): ConfigFile {
  const whole: Place = { label: name, rank: RANK.file, offset: 0 };
  let hash: string | null = null;
  const failed = (text: string): ConfigFile => ({
    values: null,
    hash,
    problems: [{ place: whole, text }],
    place: () => whole,
  });
  const file = readSmallFile(name, MOST_BYTES);
  if (file.kind === 'failed') return failed(`the configuration file ${file.why}`);
  hash = hashOf(file.bytes);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(file.bytes);
  } catch {
    return failed('the configuration file is not UTF-8 text');
  }
  try {
    return { ...parse(name, text), hash };
  } catch (error) {
    if (error instanceof RangeError) return failed(NESTED);
    if (error instanceof ReferenceError) {
      return failed(
        `not usable YAML: anchors are repeated too often; allowed: at most ${MOST_ALIASES} values by alias`,
      );
    }
    throw error;
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** What the file is now: the hash of its bytes as `readConfigFile` gives it, or why it cannot be read. */
export function lookAtConfigFile(name: string): string {
  const file = readSmallFile(name, MOST_BYTES);
  return file.kind === 'ok' ? hashOf(file.bytes) : file.why;
}

function parse(name: string, text: string): Omit<ConfigFile, 'hash'> {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
    logLevel: 'error',
  });
  const at = (offset: number, path: Path): Place => {
    const { line, col } = lines.linePos(offset);
    const key = path.length === 0 ? '' : ` ${formatPath(path)}`;
    return { label: `${name}:${line}:${col}${key}`, rank: RANK.file, offset };
  };
  const place = (path: Path): Place => at(offsetOf(document, path), path);
  const aliases = findAliases(document);
  const unresolved = aliases.filter(({ resolved }) => !resolved);
  if (aliases.length > MOST_ALIASES) throw new ReferenceError('more aliases than a configuration needs');
  const problems = [
    ...[...document.errors, ...document.warnings].map((error) => ({
      place: at(error.pos[0], []),
      text: explainSyntax(error, text),
    })),
    ...unresolved.map(({ offset, name: alias }) => ({
      place: at(offset, []),
      text: `found *${alias}, an alias of nothing; allowed: the name of an anchor that stands before it`,
    })),
  ];
  if (unresolved.length > 0 || document.errors.some(({ code }) => code !== 'DUPLICATE_KEY')) {
    return { values: null, problems, place };
  }
  const values: unknown = document.toJS({ maxAliasCount: MOST_ALIASES }) ?? {};
  if (isTree(values) && !Object.hasOwn(values, '__proto__')) return { values, problems, place };
  const found = isTree(values) ? 'the key __proto__' : describe(values);
  problems.push({
    place: at(offsetOf(document, []), []),
    text: `found ${found}; allowed: a map of keys such as "markets: [BTC_USDT]"`,
  });
  return { values: null, problems, place };
}

interface AliasUse {
  readonly offset: number;
  readonly name: string;
  /** Its anchor stands before it. */
  readonly resolved: boolean;
}

/** All aliases in one pass: the library itself looks through the whole file for each. */
function findAliases(document: Document.Parsed): AliasUse[] {
  const anchors = new Set<string>();
  const aliases: AliasUse[] = [];
  visit(document, {
    Alias: (_key, node) => {
      aliases.push({
        offset: node.range?.[0] ?? 0,
        name: node.source,
        resolved: anchors.has(node.source),
      });
    },
    Value: (_key, node) => {
      if (node.anchor !== undefined) anchors.add(node.anchor);
    },
  });
  return aliases;
}

function explainSyntax(error: YAMLError, text: string): string {
  if (error.message.includes('call stack')) return NESTED;
  if (error.code === 'MULTIPLE_DOCS') return 'found a second YAML document; allowed: one';
  if (error.code === 'DUPLICATE_KEY') {
    const key = /^[^\s:]+/.exec(text.slice(error.pos[0]))?.[0] ?? '';
    return `${key}: found the same key a second time; allowed: each key once`;
  }
  return `not valid YAML: ${error.message.split('\n')[0]}`;
}

/** Offset of the key (or list entry) that `path` leads to, or of the last one on the way that exists. */
function offsetOf(document: Document.Parsed, path: Path): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined || !isScalar(pair.key)) break;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(step)];
      if (item === undefined) break;
      offset = (item as { range?: [number, number, number] }).range?.[0] ?? offset;
      node = item;
    } else break;
  }
  return offset;
}
