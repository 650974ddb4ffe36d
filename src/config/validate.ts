import { Ajv, type ErrorObject } from 'ajv';
import envSchema from 'env-schema';
import { MARKET_PATTERN, nearest, nearestMarket, suggest } from '../util/nearest.ts';
import { isRecord } from '../util/text.ts';
import {
  describe,
  describeAllowed,
  formatPath,
  type Mistake,
  MOST_TOLD,
  type Path,
  type Place,
  type Problem,
  RANK,
  suggestInstead,
  type Tree,
} from './problem.ts';
import { BOT_PATTERN, FileSchema, type SchemaNode, type Values } from './schema.ts';

type Violation = ErrorObject<string, Readonly<Record<string, unknown>>>;

/**
 * Checks values against a schema, and says all that is wrong. Variables, whose names begin with `prefix`, are checked by
 * env-schema: numbers may be written as text. In a file, without a prefix, `"60"` is a mistake. The values
 * come back without what is wrong: keys deleted, list entries undefined.
 */
export function validate(values: Tree, schema: object, prefix = '') {
  const first = check(values, schema, prefix);
  if (first.violations.length === 0) return { values: first.values, mistakes: [] };
  const mistakes = first.violations.flatMap((one, index) => explain(one, prefix, index < MOST_TOLD) ?? []);
  const left = structuredClone(values);
  for (const { path } of mistakes) takeOut(left, path);
  // The values of a file stay as they are; those of variables become numbers in a check without mistakes only.
  return { values: prefix === '' ? left : check(left, schema, prefix).values, mistakes };
}

const OPTIONS = {
  allErrors: true,
  verbose: true,
  allowUnionTypes: true,
  // To check our schemas takes longer than to compile them: a test checks them instead.
  validateSchema: false,
  // Checks run once or twice: they need not be fast.
  code: { optimize: false },
} as const;
const file = new Ajv(OPTIONS);
const environment = new Ajv({ ...OPTIONS, coerceTypes: true });

/** The values, with numbers for text where that is allowed, and what is wrong with them. */
function check(data: Tree, schema: object, prefix: string): { values: Tree; violations: Violation[] } {
  if (prefix === '') {
    file.validate(schema, data);
    return { values: data, violations: file.errors ?? [] };
  }
  try {
    const values = envSchema<Tree>({ schema: schema as Tree, env: false, data, ajv: environment });
    return { values, violations: [] };
  } catch (error) {
    const violations = (error as { errors?: Violation[] }).errors;
    if (violations === undefined) throw error;
    return { values: data, violations };
  }
}

function explain(
  { instancePath, keyword, params, parentSchema, data }: Violation,
  prefix: string,
  isTold: boolean,
) {
  const node = parentSchema as SchemaNode;
  const path = readPointer(instancePath);
  const at = (step: string | number, text: string): Mistake => ({ path: [...path, step], text });
  switch (keyword) {
    case 'pattern': {
      const refuse = PATTERNS[node.pattern ?? ''];
      return refuse === undefined ? null : { path, text: `found ${describe(data)}; ${refuse(String(data))}` };
    }
    case 'additionalProperties': {
      const name = String(params.additionalProperty);
      return { ...at(name, isTold ? explainUnknown(name, node, prefix) : 'unknown key'), keyOnly: true };
    }
    case 'required': {
      const name = String(params.missingProperty);
      return at(name, `missing; allowed: ${describeAllowed(node.properties?.[name] ?? {})}`);
    }
    case 'uniqueItems': {
      const index = Number(params.i);
      return at(index, `found ${describe(under(data, index))} a second time; allowed: each once`);
    }
    default: {
      const instead = suggestInstead(data, node);
      return { path, text: `found ${describe(data)}; allowed: ${describeAllowed(node)}${instead}` };
    }
  }
}

/** What is allowed by a pattern. One that is not here is explained by the checks of meaning. */
const PATTERNS: Readonly<Record<string, (found: string) => string>> = {
  [BOT_PATTERN]: () => 'allowed: 1 to 64 letters, digits, dots, dashes and underscores, not dots alone',
  [MARKET_PATTERN]: allowMarket,
};

function allowMarket(found: string): string {
  const variable = found.includes(':') ? ', or MARKET[:SECONDS[:TYPE+TYPE]] in a variable or flag' : '';
  const [, name, seconds] = /^([A-Z0-9]+_[A-Z0-9]+):(\d+)$/.exec(found) ?? [];
  const meant = name === undefined ? nearestMarket(found) : `{ market: ${name}, timeoutSeconds: ${seconds} }`;
  return `allowed: BASE_QUOTE in upper-case letters and digits${variable}${suggest(meant)}`;
}

function explainUnknown(name: string, node: SchemaNode, prefix: string): string {
  const isKey = prefix === '';
  if (name === '<<')
    return 'unknown key; merge keys are not read here: write the keys out, or give the whole section by its alias';
  if (isKey && /token/i.test(name))
    return 'unknown key; a token never stands in this file: name the file that holds it in control.tokenFile';
  if (isKey && /secret|pass|(^|api[^a-z]?)key$/i.test(name))
    return 'unknown key; key and secret never stand in this file: set KILLSWITCHD_API_KEY_FILE and KILLSWITCHD_API_SECRET_FILE';
  const names = Object.keys(node.properties ?? {});
  const bare = (full: string) => full.slice(prefix.length);
  const near = nearest(bare(name), names.map(bare));
  const ofMarket = names.includes('market') && /^(name|symbol|pair|ticker)$/i.test(name) ? 'market' : null;
  const elsewhere = isKey ? (ofMarket ?? findElsewhere(name)) : null;
  const meant = near === null ? elsewhere : `${prefix}${near}`;
  const shown = meant !== null && names.length > 16 ? '' : `; allowed: ${names.join(', ')}`;
  return `unknown ${isKey ? 'key' : 'variable'}${shown}${suggest(meant)}`;
}

/** What is under a key, or at a position of a list; undefined where there is nothing of the kind. */
function under(at: unknown, step: string | number): unknown {
  return isRecord(at) || Array.isArray(at) ? (at as Tree)[step] : undefined;
}

/** `/markets/1/bot` as `['markets', 1, 'bot']`. No key of a schema is a number. */
function readPointer(pointer: string): Path {
  const steps = pointer.split('/').slice(1);
  return steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

function takeOut(values: Tree, path: Path): void {
  const at = path.slice(0, -1).reduce(under, values);
  const last = path.at(-1);
  if (last === undefined) return;
  if (Array.isArray(at)) at[Number(last)] = undefined;
  else if (isRecord(at)) delete at[last];
}

export type Source = 'flag' | 'environment' | 'file' | 'default';

/** What one source says, in the shape of the file, with every mistake taken out and told. */
export interface Layer {
  readonly source: Source;
  readonly values: Tree;
  readonly problems: readonly Problem[];
  readonly place: (path: Path) => Place;
}

/** Checks values in the shape of the file. */
export function checkLayer(source: Source, values: Tree, place: (path: Path) => Place): Layer {
  const checked = validate(values, FileSchema);
  const problems = checked.mistakes.map((mistake) => ({ place: place(mistake.path), ...mistake }));
  return { source, values: checked.values, problems, place };
}

/** Where an unknown key may have been meant to stand: `timeoutSeconds` under `defaults`. */
function findElsewhere(name: string): string | null {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  if (Object.hasOwn(sections, name)) return `${name} at the top of the file`;
  const section = Object.keys(sections).find((key) => Object.hasOwn(sections[key]?.properties ?? {}, name));
  return section === undefined ? null : `${section}.${name}`;
}

/** The first layer that has a value at `path`. */
export function layerOf<One extends Pick<Layer, 'values'>>(
  layers: readonly One[],
  path: Path,
): One | undefined {
  return layers.find(({ values }) => path.reduce<unknown>(under, values) !== undefined);
}

export type Report = ReturnType<typeof createReport>;

/** Adds to the problems that the layers have what is wrong with all of them together. A key is `exchange.baseUrls`. */
export function createReport(problems: Problem[], layers: readonly Layer[]) {
  const mistaken = problems.flatMap(({ path }) => (path === undefined ? [] : [path]));
  const placeOf = (path: Path) => (layerOf(layers, path) ?? DEFAULTS).place(path);
  /** Something at, above or below the key was already found wrong: what follows from it is unknown. */
  const isMistaken = (key: string) => {
    const path = key.split('.');
    return mistaken.some((one) => one.every((step, at) => at >= path.length || step === path[at]));
  };
  /** Null: nothing is wrong. */
  const wrong = (at: string | Path, text: string | null) => {
    const path = typeof at === 'string' ? at.split('.') : at;
    if (text !== null) problems.push({ place: placeOf(path), text });
  };
  return {
    wrong,
    isMistaken,
    /** Reports a key that no source gives. Where one gives it wrongly, that was reported already. */
    missing: (key: string, text: string) => wrong(key, isMistaken(key) ? null : text),
    /** Where a value stands, for a message about another one. */
    labelOf: (path: Path) => placeOf(path).label,
  };
}

/** The defaults of the schema, and null for keys without one. */
export const DEFAULTS: Layer = {
  source: 'default',
  values: defaultsOf(FileSchema) as Tree,
  problems: [],
  place: (path) => ({ label: formatPath(path), rank: RANK.missing, offset: 0 }),
};

function defaultsOf(node: SchemaNode): unknown {
  if (node.properties === undefined) return node.default ?? null;
  return Object.fromEntries(Object.entries(node.properties).map(([key, inner]) => [key, defaultsOf(inner)]));
}

/** One tree out of several, the first of which wins key by key, and by keys of sections. Lists are replaced whole. */
export function mergeLayers(layers: readonly Layer[]): Values {
  const { $schema: _schema, ...lowest } = DEFAULTS.values;
  const merged = Object.entries(lowest).map(([key, value]) => {
    const given = layers.map(({ values }) => values[key]).filter((one) => one !== undefined);
    return [key, isRecord(value) ? Object.assign({}, ...given.toReversed()) : given[0]];
  });
  return Object.fromEntries(merged) as Values;
}
