import { Ajv } from 'ajv';
import envSchema from 'env-schema';
import { nearest, suggest } from '../util/nearest.ts';
import { isRecord } from '../util/text.ts';
import {
  describe,
  describeAllowed,
  formatPath,
  type Mistake,
  type Path,
  type Place,
  type Problem,
  RANK,
  suggestInstead,
  type Tree,
} from './problem.ts';
import { FileSchema, type SchemaNode, type Values } from './schema.ts';

/** What is checked. Numbers may be written as text in variables, and not in a file, where `"60"` is a mistake. */
export interface Rules {
  readonly schema: object;
  /** What a name is called. */
  readonly noun: 'key' | 'variable';
  /** What all names begin with, and what is therefore no sign of likeness. */
  readonly prefix: string;
}

/** What AJV tells about one violation, as far as it is used here. */
interface Violation {
  readonly instancePath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly parentSchema: SchemaNode;
  readonly data: unknown;
}

/**
 * Checks values against a schema, the environment's by env-schema, and says everything that is wrong. Violations of
 * `pattern` are left to the checks of meaning, which know what to write instead. The values come back with numbers for
 * text where that is allowed, and without what is wrong: keys deleted, list entries undefined.
 */
export function validate(values: Tree, rules: Rules): { values: Tree; mistakes: readonly Mistake[] } {
  const first = check(values, rules);
  if (first.violations.length === 0) return { values: first.values, mistakes: [] };
  const left = structuredClone(values);
  const mistakes: Mistake[] = [];
  for (const violation of withoutOtherForms(first.violations)) {
    const mistake = explain(violation, rules, values);
    if (mistake === null) continue;
    mistakes.push(mistake);
    takeOut(left, mistake.path);
  }
  return { values: check(left, rules).values, mistakes };
}

const OPTIONS = {
  allErrors: true,
  verbose: true,
  allowUnionTypes: true,
  addUsedSchema: false,
  // To check our schemas takes longer than to compile them: a test checks them instead.
  validateSchema: false,
  // What is run once need not be fast.
  code: { optimize: false },
} as const;
const file = new Ajv(OPTIONS);
const environment = new Ajv({ ...OPTIONS, coerceTypes: true });

/** The values, with numbers for text where that is allowed, and what is wrong with them. */
function check(data: Tree, { schema, noun }: Rules): { values: Tree; violations: Violation[] } {
  if (noun === 'key') {
    const isRight = file.validate(schema, data);
    return { values: data, violations: isRight ? [] : ((file.errors ?? []) as unknown as Violation[]) };
  }
  try {
    return {
      values: envSchema<Tree>({ schema: schema as Tree, env: false, data, ajv: environment }),
      violations: [],
    };
  } catch (error) {
    const violations = (error as { errors?: Violation[] }).errors;
    if (violations === undefined) throw error;
    return { values: data, violations };
  }
}

/** Of a value that may take several forms (a market) only what is wrong with the form it was written in. */
function withoutOtherForms(violations: readonly Violation[]): Violation[] {
  const unions = new Map<string, boolean>();
  for (const { keyword, instancePath, data } of violations) {
    if (keyword === 'anyOf') unions.set(instancePath, typeof data === 'string' || isRecord(data));
  }
  return violations.filter(({ keyword, instancePath }) => {
    const at = unions.keys().find((path) => `${instancePath}/`.startsWith(`${path}/`));
    if (at === undefined) return true;
    const formIsKnown = unions.get(at) === true;
    if (at !== instancePath) return formIsKnown;
    return keyword === 'anyOf' ? !formIsKnown : formIsKnown && keyword !== 'type';
  });
}

function explain(violation: Violation, rules: Rules, values: Tree): Mistake | null {
  const { keyword, params, parentSchema: node, data } = violation;
  const path = readPointer(violation.instancePath, values);
  switch (keyword) {
    case 'pattern':
      return null;
    case 'additionalProperties': {
      const name = String(params.additionalProperty);
      return { path: [...path, name], text: explainUnknown(name, node, rules), keyOnly: true };
    }
    case 'required': {
      const name = String(params.missingProperty);
      const allowed = describeAllowed(node.properties?.[name] ?? {});
      return { path: [...path, name], text: `missing; allowed: ${allowed}` };
    }
    case 'uniqueItems':
      return {
        path: [...path, Number(params.i)],
        text: `found ${describe((data as unknown[])[Number(params.i)])} a second time; allowed: each once`,
      };
    default:
      return { path, text: explainValue(data, node) };
  }
}

function explainUnknown(name: string, node: SchemaNode, rules: Rules): string {
  const names = Object.keys(node.properties ?? {});
  if (name === '<<')
    return 'unknown key; merge keys are not read here: write the keys out, or give the whole section by its alias';
  if (rules.noun === 'key' && /token/i.test(name)) {
    return 'unknown key; a token never stands in this file: name the file that holds it in control.tokenFile';
  }
  if (rules.noun === 'key' && /secret|passw|(^|api[^a-z]?)key$/i.test(name)) {
    return 'unknown key; key and secret never stand in this file: set KILLSWITCHD_API_KEY_FILE and KILLSWITCHD_API_SECRET_FILE';
  }
  const bare = (full: string) => full.slice(rules.prefix.length);
  const near = nearest(bare(name), names.map(bare));
  const elsewhere = rules.noun === 'key' ? findElsewhere(name) : null;
  const meant = near === null ? elsewhere : `${rules.prefix}${near}`;
  const shown = meant !== null && names.length > 16 ? '' : `; allowed: ${names.join(', ')}`;
  return `unknown ${rules.noun}${shown}${suggest(meant)}`;
}

function explainValue(data: unknown, node: SchemaNode): string {
  return `found ${describe(data)}; allowed: ${describeAllowed(node)}${suggestInstead(data, node)}`;
}

/** What is under a key, or at a position of a list; undefined where there is nothing of the kind. */
function under(at: unknown, step: string | number): unknown {
  return isRecord(at) || Array.isArray(at) ? (at as Tree)[step] : undefined;
}

/** `/markets/1/bot` as `['markets', 1, 'bot']`. */
function readPointer(pointer: string, values: Tree): Path {
  let at: unknown = values;
  return pointer
    .split('/')
    .slice(1)
    .map((raw) => {
      const step = raw.replaceAll('~1', '/').replaceAll('~0', '~');
      const isEntry = Array.isArray(at);
      at = under(at, step);
      return isEntry ? Number(step) : step;
    });
}

function takeOut(values: Tree, path: Path): void {
  const at = path.slice(0, -1).reduce(under, values);
  const last = path.at(-1);
  if (last === undefined) return;
  if (Array.isArray(at)) at[Number(last)] = undefined;
  else if (isRecord(at)) delete at[last];
}

export type Source = 'flag' | 'environment' | 'file' | 'default';

/** What one source says, in the shape of the file. */
export interface Said {
  readonly source: Source;
  readonly values: Tree;
}

/** The same with every mistake taken out and told. */
export interface Layer extends Said {
  readonly problems: readonly Problem[];
  /** Paths at which something was written that is wrong. */
  readonly mistaken: readonly Path[];
  readonly place: (path: Path) => Place;
}

/** Checks values in the shape of the file. */
export function checkLayer(source: Source, values: Tree, place: (path: Path) => Place): Layer {
  const checked = validate(values, { schema: FileSchema, noun: 'key', prefix: '' });
  return {
    source,
    values: checked.values,
    problems: checked.mistakes.map(({ path, text, keyOnly }) => ({ place: place(path), text, keyOnly })),
    mistaken: checked.mistakes.map(({ path }) => path),
    place,
  };
}

/** Where an unknown key may have been meant to stand: `timeoutSeconds` under `defaults`. */
function findElsewhere(name: string): string | null {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  if (Object.hasOwn(sections, name)) return `${name} at the top of the file`;
  const section = Object.keys(sections).find((key) => Object.hasOwn(sections[key]?.properties ?? {}, name));
  return section === undefined ? null : `${section}.${name}`;
}

/** The first layer that has a value at `path`. */
export function layerOf<One extends Said>(layers: readonly One[], path: Path): One | undefined {
  return layers.find(({ values }) => path.reduce<unknown>(under, values) !== undefined);
}

/** What holds where nobody says otherwise: the defaults that the schema states, and null for keys that have none. */
export const DEFAULTS: Layer = {
  source: 'default',
  values: defaultsOf(FileSchema) as Tree,
  problems: [],
  mistaken: [],
  place: (path) => ({ label: formatPath(path), rank: RANK.missing, offset: 0 }),
};

function defaultsOf(node: SchemaNode): unknown {
  if (node.properties === undefined) return node.default ?? null;
  return Object.fromEntries(Object.entries(node.properties).map(([key, inner]) => [key, defaultsOf(inner)]));
}

/** One tree out of several, the first of which wins key by key. Lists are replaced whole. */
export function mergeLayers(layers: readonly Layer[]): Values {
  const merge = (lower: Tree, upper: Tree): Tree => {
    const merged = Object.entries(upper).map(([key, value]) => {
      const below = lower[key];
      return [key, isRecord(value) && isRecord(below) ? merge(below, value) : value];
    });
    return { ...lower, ...Object.fromEntries(merged) };
  };
  const { $schema: _schema, ...values } = layers.map((layer) => layer.values).reduceRight(merge);
  return values as Values;
}
