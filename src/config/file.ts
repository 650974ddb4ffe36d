import { isUtf8 } from 'node:buffer';
import * as yaml from 'yaml';
import { isRecord } from '../util/text.ts';
import { describe, formatPath, type Path, type Place, type Problem, RANK, type Tree } from './problem.ts';
import { type LookAt, lookNow } from './secrets.ts';

/** A file may use an anchor a few times; more is a "billion laughs" bomb and not a configuration. */
const MOST_ALIASES = 100;
const NESTED = 'not usable YAML: nested too deeply';
const TOO_MANY_ALIASES = `not usable YAML: anchors are repeated too often; allowed: at most ${MOST_ALIASES} values by alias`;

export interface ConfigFile {
  /** Null where nothing could be read out of the file. */
  readonly values: Tree | null;
  readonly problems: readonly Problem[];
  /** Where a value stands: the line and column of its key, or of the nearest key above it. */
  readonly place: (path: Path) => Place;
}

/** Reads and parses a YAML (or JSON) file of at most 1 MiB. Says what is wrong with the syntax, not with the values. */
export function readConfigFile(name: string, lookAt: LookAt = lookNow): ConfigFile {
  const whole: Place = { label: name, rank: RANK.file, offset: 0 };
  const { content: file } = lookAt(name);
  const failed = (text: string): ConfigFile => {
    return { values: null, problems: [{ place: whole, text }], place: () => whole };
  };
  if (file.kind === 'wrong') return failed(`the configuration file ${file.text}`);
  const { bytes } = file.value;
  if (!isUtf8(bytes)) return failed('the configuration file is not UTF-8 text');
  try {
    return parse(name, new TextDecoder().decode(bytes));
  } catch (error) {
    if (error instanceof RangeError) return failed(NESTED);
    if (error instanceof ReferenceError) return failed(TOO_MANY_ALIASES);
    throw error;
  }
}

function parse(name: string, text: string): ConfigFile {
  const lineCounter = new yaml.LineCounter();
  const at = (offset: number, path: Path, length: number): Place => {
    const { line, col } = lineCounter.linePos(offset);
    const key = path.length === 0 ? '' : ` ${formatPath(path)}`;
    const excerpt = (keyOnly: boolean) => {
      // From a comma on, lest a secret be shown without the name before it.
      const comma = text.indexOf(',', offset - LOOKED_AT);
      const cut = comma === -1 ? offset : Math.min(comma, offset);
      const from = col <= LOOKED_AT ? offset - col + 1 : cut;
      const around = text.slice(from, offset + LOOKED_AT);
      return excerptOf(around, line, offset - from, keyOnly ? null : length);
    };
    return { label: `${name}:${line}:${col}${key}`, rank: RANK.file, offset, excerpt };
  };
  const document = compose(text, lineCounter);
  if (document instanceof yaml.YAMLError) {
    const place = at(document.pos[0], [], 1);
    return { values: null, problems: [{ place, text: explainSyntax(document) }], place: () => place };
  }
  const index = indexOf(document);
  const { aliases, repeated } = index;
  const place = (path: Path): Place => {
    const { offset, end } = find(document, index, path);
    return at(offset, path, end - offset);
  };
  const unresolved = [...aliases].flatMap(([alias, value]) => (value === undefined ? alias : []));
  if (aliases.size > MOST_ALIASES) throw new ReferenceError('more aliases than a configuration needs');
  const problems = document.warnings.map((warning) => {
    return { place: at(warning.pos[0], [], 1), text: explainSyntax(warning) };
  });
  for (const offset of repeated) {
    const key = /^[^\s:]+/.exec(text.slice(offset, offset + LOOKED_AT))?.[0] ?? '';
    const twice = 'found the same key a second time; allowed: each key once';
    problems.push({ place: at(offset, [key], key.length), text: twice });
  }
  const anchor = 'allowed: the name of an anchor that stands before it';
  for (const { range, source } of unresolved) {
    const mark = at(range?.[0] ?? 0, [], source.length + 1);
    problems.push({ place: mark, text: `found *${source}, an alias of nothing; ${anchor}` });
  }
  if (unresolved.length > 0) return { values: null, problems, place };
  const values: unknown = document.toJS({ maxAliasCount: MOST_ALIASES }) ?? {};
  if (isRecord(values) && !Object.hasOwn(values, '__proto__')) return { values, problems, place };
  // A text may be a secret whose file was given as the configuration.
  const isText = typeof values === 'string' || typeof values === 'number';
  const whole = isText ? `a text of ${String(values).length} characters` : describe(values);
  const [found, path] = isRecord(values) ? ['the key __proto__', ['__proto__']] : [whole, []];
  const wanted = `found ${found}; allowed: a map of keys such as "markets: [BTC_USDT]"`;
  problems.push({ place: at(find(document, index, path).offset, [], 1), text: wanted });
  return { values: null, problems, place };
}

/**
 * The one document, or the first mistake in the syntax. The library has no option to stop at a mistake, and reads on: a
 * megabyte of mistakes held up renewals for 9 to 17 s.
 */
function compose(text: string, lineCounter: yaml.LineCounter): yaml.Document.Parsed | yaml.YAMLError {
  const composer = new yaml.Composer({
    logLevel: 'error',
    // Also where the file names another schema: that may have values that no check expects, and merge keys that throw.
    schema: 'core',
    resolveKnownTags: false,
    // The library compares each key with all others.
    uniqueKeys: false,
  });
  let first: yaml.YAMLError | undefined;
  composer.streamInfo().errors.push = (error) => {
    // The library catches an error that is thrown inside a value, and adds it as another mistake.
    first ??= error;
    throw first;
  };
  const tokens = oneDocument(new yaml.Parser(lineCounter.addNewLine).parse(text));
  try {
    const [document] = composer.compose(tokens, true, text.length);
    return document as yaml.Document.Parsed;
  } catch (error) {
    const mistake = first ?? error;
    if (mistake instanceof yaml.YAMLError) return mistake;
    throw error;
  }
}

/** Throws at the second document: of a file with many, no further one is read. */
function* oneDocument(tokens: Iterable<yaml.CST.Token>) {
  let documents = 0;
  for (const token of tokens) {
    if (token.type === 'document') documents += 1;
    if (documents > 1) throw new yaml.YAMLParseError([token.offset, token.offset + 1], 'MULTIPLE_DOCS', '');
    yield token;
  }
}

/** Characters of a line that are looked at on either side of a mark: programs write thousands of markets in one line. */
const LOOKED_AT = 500;
/** Characters of it that are shown. */
const SHOWN_AROUND = 60;
/** A name that is followed by a colon, and what stands behind it. */
const SECRET_VALUE =
  /([\w.-]*(?:secret|pass|pwd|token|key|auth|cred|hmac|sign|priv|urlfile)[\w.-]*["']?\s*:\s*)("[^"]*"?|'[^']*'?|[^\s,}\]][^,}\]]*)/gi;
/** A user and a password in an address, what is asked of it, and a text that looks like a key. */
const SECRET_TEXT =
  /(?<=\/\/|["'])[^"']*@|(?<=\?)[^\s"',}\]]+|[\w+/=-]{40,}|(?=[A-Za-z+=_-]*\d)[\w+=-]{20,}/g;

/**
 * The first line of `text` with a mark under what stands `before` characters behind its begin. `given` is the length of
 * that; null means the key alone, and nothing behind it is shown. What may be a secret in the wrong place is not shown:
 * the mark then ends before it.
 */
function excerptOf(text: string, line: number, before: number, given: number | null): string[] {
  const full = /^.*/.exec(text)?.[0].replaceAll('\t', ' ') ?? '';
  const marked = before + (given ?? /^[^\s:]*/.exec(full.slice(before))?.[0].length ?? 1);
  const whole = given === null ? `${full.slice(0, marked)}: ...` : full;
  const hide = (part: string) => part.replace(SECRET_VALUE, '$1...').replace(SECRET_TEXT, '...');
  const shown = hide(whole);
  const lead = hide(whole.slice(0, before));
  // A value that is hidden with its key cannot be marked.
  if (!shown.startsWith(lead)) return [];
  const at = lead.length;
  const from = Math.max(0, at - SHOWN_AROUND);
  const most = Math.min(marked - before, hide(whole.slice(0, marked)).length - at, SHOWN_AROUND);
  const number = String(line);
  return [
    `  ${number} | ${shown.slice(from, at + SHOWN_AROUND).trimEnd()}`,
    `  ${' '.repeat(number.length)} | ${' '.repeat(at - from)}${'^'.repeat(Math.max(1, most))}`,
  ];
}

/** All aliases and keys in one pass: the library looks through the whole file, or map, for each. */
function indexOf(document: yaml.Document.Parsed) {
  const anchors = new Map<string, yaml.Node>();
  /** What each alias stands for; undefined where that is nothing. */
  const aliases = new Map<yaml.Alias, yaml.Node | undefined>();
  /** The first pair of each key. */
  const pairs = new Map<unknown, ReadonlyMap<string, yaml.Pair>>();
  /** Where keys stand that their map has twice. */
  const repeated: number[] = [];
  yaml.visit(document, {
    Alias(_key, alias) {
      aliases.set(alias, anchors.get(alias.source));
    },
    Value(_key, value) {
      if (value.anchor !== undefined) anchors.set(value.anchor, value);
      if (!yaml.isMap(value)) return;
      const byKey = new Map<string, yaml.Pair>();
      for (const pair of value.items) {
        if (!yaml.isScalar<string | null>(pair.key)) continue;
        const key = String(pair.key.value ?? '');
        if (byKey.has(key)) repeated.push(pair.key.range?.[0] ?? 0);
        else byKey.set(key, pair);
      }
      pairs.set(value, byKey);
    },
  });
  return { aliases, pairs, repeated };
}

/** What somebody who does not know the parser's terms can do about a mistake, by a part of the parser's message. */
const HINTS: Readonly<Record<string, string>> = {
  'Sequence item without - indicator|Unexpected block-seq-ind':
    'write each entry of a list on a line of its own, with a dash and a space in front: "- BTC_USDT"',
  'All mapping items must start at the same column':
    'write all keys of a section in the same column, and a dash in front of each entry of a list',
  'Nested mappings are not allowed in compact':
    'put a text with ": " in it into quotes, or write the section on lines of its own',
  'Block collections are not allowed within flow|must be sufficiently indented and end with':
    'close every [ and {, and put a comma between two entries',
  'Implicit keys need to be on a single line':
    'write a dash and a space in front of each entry of a list: "- BTC_USDT"',
  'Unexpected scalar at node end': 'begin all sections in the first column',
  'Implicit map keys need to be followed':
    'write a colon and a space behind the key, or a dash and a space in front of an entry of a list',
  'Tabs are not allowed': 'use spaces',
  'Missing closing': 'close the quote',
  'Plain value cannot start with': 'put the text into quotes',
};

function explainSyntax(error: yaml.YAMLError): string {
  if (error.message.includes('call stack')) return NESTED;
  if (error.code === 'MULTIPLE_DOCS') return 'found a second YAML document; allowed: one';
  const [first = ''] = error.message.split('\n');
  const [, hint] = Object.entries(HINTS).find(([part]) => new RegExp(part).test(first)) ?? [];
  return `not valid YAML: ${first}${hint === undefined ? '' : `; ${hint}`}`;
}

/** Where the key (or list entry) stands that `path` leads to, or the last one on the way that exists. */
function find(document: yaml.Document.Parsed, { aliases, pairs }: ReturnType<typeof indexOf>, path: Path) {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  let end = offset + 1;
  for (const step of path) {
    if (yaml.isAlias(node)) node = aliases.get(node);
    const pair = pairs.get(node)?.get(String(step));
    node = yaml.isSeq(node) ? node.items[Number(step)] : pair?.value;
    const own = pair?.key ?? node;
    if (!yaml.isNode(own)) break;
    offset = own.range?.[0] ?? offset;
    // A value is marked with its key; a section by its key alone.
    end = (yaml.isScalar(node) ? node : own).range?.[1] ?? offset + 1;
  }
  return { offset, end };
}
