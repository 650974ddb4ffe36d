import envSchema, { type EnvSchemaOpt } from 'env-schema';
import { nearest, suggest } from '../util/nearest.ts';
import type { Path } from './problem.ts';
import { describe, describeAllowed, type SchemaNode, suggestInstead } from './wording.ts';

/** A tree of plain values, as YAML or JSON gives it. */
export type Tree = Record<string, unknown>;

export interface Mistake {
  readonly path: Path;
  readonly text: string;
}

export interface Validated {
  /** What is left when every mistake is taken out: keys deleted, list entries undefined. Coerced where asked for. */
  readonly values: Tree;
  readonly mistakes: readonly Mistake[];
}

export interface Rules {
  readonly schema: object;
  /** Numbers may be written as text: true for variables and flags, false for files, where `"60"` is a mistake. */
  readonly coerce: boolean;
  /** What a name is called: `key` or `variable`. */
  readonly noun: string;
  /** What all names begin with, and what is therefore no sign of likeness. */
  readonly prefix: string;
  /** Where an unknown name may have been meant to stand, by its last part: `timeoutSeconds` under `defaults`. */
  readonly elsewhere: (name: string) => string | null;
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
 * Checks values against a schema by env-schema and says everything that is wrong. Violations of `pattern` are left to
 * the checks of meaning, which know what to write instead.
 */
export function validate(values: Tree, rules: Rules): Validated {
  const first = runEnvSchema(values, rules);
  if (first.violations.length === 0) return { values: first.values, mistakes: [] };
  const left = structuredClone(values);
  const mistakes: Mistake[] = [];
  for (const violation of withoutOtherForms(first.violations)) {
    const mistake = explain(violation, rules, values);
    if (mistake === null) continue;
    mistakes.push(mistake);
    takeOut(left, mistake.path);
  }
  return { values: rules.coerce ? runEnvSchema(left, rules).values : left, mistakes };
}

type Ajv = Parameters<Extract<EnvSchemaOpt['ajv'], { customOptions: unknown }>['customOptions']>[0];

/** One checker for text that may mean a number and one for values that must not. Making one takes longest of all. */
const checkers = new Map<boolean, Ajv>();

function checkerFor(coerceTypes: boolean): NonNullable<EnvSchemaOpt['ajv']> {
  return (
    checkers.get(coerceTypes) ?? {
      customOptions: (made) => {
        // The library's own default drops unknown keys silently, and a typo would then mean the default timeout.
        Object.assign(made.opts, {
          removeAdditional: false,
          coerceTypes,
          useDefaults: false,
          allErrors: true,
          verbose: true,
          // Compiling the rules for schemas takes longer than compiling ours, which a test holds against them.
          validateSchema: false,
        });
        checkers.set(coerceTypes, made);
        return made;
      },
    }
  );
}

function runEnvSchema(values: Tree, rules: Rules): { values: Tree; violations: Violation[] } {
  try {
    const checked = envSchema<Tree>({
      schema: rules.schema as Record<string, unknown>,
      env: false,
      data: [values],
      ajv: checkerFor(rules.coerce),
    });
    return { values: checked, violations: [] };
  } catch (error) {
    const violations = (error as { errors?: Violation[] }).errors;
    if (violations === undefined) throw error;
    return { values, violations };
  }
}

/** Of a value that may take several forms (a market) only what is wrong with the form it was written in. */
function withoutOtherForms(violations: readonly Violation[]): Violation[] {
  const unions = new Map<string, boolean>();
  for (const { keyword, instancePath, data } of violations) {
    if (keyword === 'anyOf') unions.set(instancePath, typeof data === 'string' || isTree(data));
  }
  return violations.filter(({ keyword, instancePath }) => {
    const at = selfAndAncestors(instancePath).find((path) => unions.has(path));
    if (at === undefined) return true;
    const formIsKnown = unions.get(at) === true;
    if (at !== instancePath) return formIsKnown;
    return keyword === 'anyOf' ? !formIsKnown : formIsKnown && keyword !== 'type';
  });
}

function selfAndAncestors(pointer: string): string[] {
  const paths = [pointer];
  for (let path = pointer; path !== ''; ) {
    path = path.slice(0, path.lastIndexOf('/'));
    paths.push(path);
  }
  return paths;
}

function explain(violation: Violation, rules: Rules, values: Tree): Mistake | null {
  const { keyword, params, parentSchema: node, data } = violation;
  const path = readPointer(violation.instancePath, values);
  switch (keyword) {
    case 'pattern':
      return null;
    case 'additionalProperties': {
      const name = String(params.additionalProperty);
      return { path: [...path, name], text: explainUnknown(name, node, rules) };
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
  if (rules.noun === 'key' && /token/i.test(name)) {
    return 'unknown key; a token never stands in this file: name the file that holds it in control.tokenFile';
  }
  if (rules.noun === 'key' && /secret|passw|(^|api[^a-z]?)key$/i.test(name)) {
    return 'unknown key; key and secret never stand in this file: set KILLSWITCHD_API_KEY_FILE and KILLSWITCHD_API_SECRET_FILE';
  }
  const bare = (full: string) => full.slice(rules.prefix.length);
  const near = nearest(bare(name), names.map(bare));
  const meant = near === null ? rules.elsewhere(name) : `${rules.prefix}${near}`;
  const shown = meant !== null && names.length > 16 ? '' : `; allowed: ${names.join(', ')}`;
  return `unknown ${rules.noun}${shown}${suggest(meant)}`;
}

function explainValue(data: unknown, node: SchemaNode): string {
  return `found ${describe(data)}; allowed: ${describeAllowed(node)}${suggestInstead(data, node)}`;
}

/** `/markets/1/bot` as `['markets', 1, 'bot']`. */
function readPointer(pointer: string, values: Tree): Path {
  const path: (string | number)[] = [];
  let at: unknown = values;
  for (const raw of pointer.split('/').slice(1)) {
    const step = raw.replaceAll('~1', '/').replaceAll('~0', '~');
    path.push(Array.isArray(at) ? Number(step) : step);
    at = isTree(at) || Array.isArray(at) ? (at as Tree)[step] : undefined;
  }
  return path;
}

function takeOut(values: Tree, path: Path): void {
  let at: unknown = values;
  for (const step of path.slice(0, -1)) {
    at = isTree(at) || Array.isArray(at) ? (at as Tree)[step] : undefined;
  }
  const last = path.at(-1);
  if (last === undefined) return;
  if (Array.isArray(at)) at[Number(last)] = undefined;
  else if (isTree(at)) delete at[last];
}

/** A map of keys, neither a list nor null. */
export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
