import { formatPath, type Path, type Place, type Problem, RANK } from './problem.ts';
import { FileSchema } from './schema.ts';
import { type Environment, SECRET_VARIABLES } from './secrets.ts';
import { isTree, type Mistake, type Rules, type Tree, validate } from './validate.ts';
import { EnvironmentSchema, type Flags, SETTINGS, type Setting } from './variables.ts';
import type { SchemaNode } from './wording.ts';

export type Source = 'flag' | 'environment' | 'file' | 'default';

/** What one source says, in the shape of the file, with every mistake taken out and told. */
export interface Layer {
  readonly source: Source;
  readonly values: Tree;
  readonly problems: readonly Problem[];
  /** Paths at which something was written that is wrong. */
  readonly mistaken: readonly Path[];
  readonly place: (path: Path) => Place;
}

/** A layer of flags or variables, which may also name the configuration file. */
export interface OuterLayer extends Layer {
  /** Null where none is named; undefined where one is named wrongly. */
  readonly config: string | null | undefined;
}

const PREFIX = 'KILLSWITCHD_';
/** More entries than any list has: the order within a variable must not run into the next variable. */
const MOST_ENTRIES = 1e6;

const FILE_RULES: Rules = {
  schema: FileSchema,
  coerce: false,
  noun: 'key',
  prefix: '',
  elsewhere: findElsewhere,
};
const VARIABLE_RULES: Rules = {
  schema: EnvironmentSchema,
  coerce: true,
  noun: 'variable',
  prefix: PREFIX,
  elsewhere: () => null,
};

/** What the environment says. Only `KILLSWITCHD_*` is looked at, and of that everything must be known. */
export function readEnvironment(environment: Environment): OuterLayer {
  const secrets: readonly string[] = SECRET_VARIABLES;
  const variables: Tree = {};
  for (const name of Object.keys(environment).sort()) {
    const value = environment[name];
    if (!name.startsWith(PREFIX) || value === undefined) continue;
    if (!secrets.includes(name) && !isServiceLink(name, environment)) variables[name] = value;
  }
  return readOuter('environment', variables, ({ variable }) => variable);
}

/**
 * Kubernetes gives every container variables about the services of its namespace: for a service named
 * `killswitchd-web` they begin with `KILLSWITCHD_WEB_SERVICE_HOST` and are nobody's typing mistake.
 */
function isServiceLink(name: string, environment: Environment): boolean {
  const service = /^(KILLSWITCHD(?:_[A-Z0-9_]+?)??)_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_.*)?$/.exec(name)?.[1];
  return service !== undefined && environment[`${service}_SERVICE_HOST`] !== undefined;
}

/** What the command line says. */
export function readFlags(flags: Flags): OuterLayer {
  const variables: Tree = {};
  for (const { variable, flag } of SETTINGS) {
    const value = flag === null ? undefined : flags[flag.key];
    if (value !== undefined) variables[variable] = typeof value === 'string' ? value : value.join(',');
  }
  return readOuter('flag', variables, ({ variable, flag }) => flag?.name ?? variable);
}

function readOuter(
  source: 'flag' | 'environment',
  variables: Tree,
  nameOf: (setting: Setting) => string,
): OuterLayer {
  const checked = validate(variables, VARIABLE_RULES);
  const problems = checked.mistakes.map(({ path, text }): Problem => {
    const index = SETTINGS.findIndex(({ variable }) => variable === path[0]);
    const setting = SETTINGS[index];
    const label = setting === undefined ? formatPath(path) : nameOf(setting);
    return { place: { label, rank: RANK[source], offset: index === -1 ? SETTINGS.length : index }, text };
  });
  const written: Tree = {};
  const refused: Path[] = [];
  for (const [offset, setting] of SETTINGS.entries()) {
    const { variable, path, read } = setting;
    const value = checked.values[variable];
    if (path === null || value === undefined) continue;
    const text = refusalOf(setting, checked.values);
    if (text === null) put(written, path, read(value));
    else {
      problems.push({ place: { label: nameOf(setting), rank: RANK[source], offset }, text });
      refused.push(path);
    }
  }
  const layer = checkLayer(source, written, (path) => {
    const index = SETTINGS.findIndex((setting) => setting.path?.every((step, at) => step === path[at]));
    const setting = SETTINGS[index];
    if (setting?.path == null)
      return { label: formatPath(path), rank: RANK[source], offset: SETTINGS.length };
    const inside = setting.list ? path.slice(setting.path.length) : [];
    const entry = typeof inside[0] === 'number' ? inside[0] : 0;
    return {
      label: formatPath([nameOf(setting), ...inside]),
      rank: RANK[source],
      offset: index + entry / MOST_ENTRIES,
    };
  });
  const config = checked.values.KILLSWITCHD_CONFIG as string | undefined;
  const configIsWrong = checked.mistakes.some(({ path }) => path[0] === 'KILLSWITCHD_CONFIG');
  const mistaken = checked.mistakes.flatMap(({ path }) => {
    const target = SETTINGS.find(({ variable }) => variable === path[0])?.path;
    return target == null ? [] : [target];
  });
  return {
    ...layer,
    problems: [...problems, ...layer.problems],
    mistaken: [...mistaken, ...refused, ...layer.mistaken],
    config: configIsWrong ? undefined : (config ?? null),
  };
}

/** What is wrong with the value of a variable, by itself or beside another one; null where nothing is. */
function refusalOf({ variable, refuse, insteadOf = [] }: Setting, values: Tree): string | null {
  const beside = insteadOf.find((other) => values[other] !== undefined);
  if (beside !== undefined) return `found beside ${beside}, which says the same; allowed: one of the two`;
  const value = values[variable];
  return typeof value === 'string' ? (refuse?.(value) ?? null) : null;
}

/** Checks values in the shape of the file. */
export function checkLayer(source: Source, values: Tree, place: (path: Path) => Place): Layer {
  const checked = validate(values, FILE_RULES);
  return {
    source,
    values: checked.values,
    problems: checked.mistakes.map(({ path, text }: Mistake) => ({ place: place(path), text })),
    mistaken: checked.mistakes.map(({ path }) => path),
    place,
  };
}

/** What holds where nobody says otherwise: the defaults that the schema states. */
export function defaultLayer(): Layer {
  return {
    source: 'default',
    values: defaultsOf(FileSchema),
    problems: [],
    mistaken: [],
    place: (path) => ({ label: formatPath(path), rank: RANK.missing, offset: 0 }),
  };
}

function defaultsOf(node: SchemaNode): Tree {
  const values: Tree = {};
  for (const [key, property] of Object.entries(node.properties ?? {})) {
    if (property.default !== undefined) values[key] = structuredClone(property.default);
    else if (property.properties !== undefined) values[key] = defaultsOf(property);
  }
  return values;
}

function findElsewhere(name: string): string | null {
  const sections: Readonly<Record<string, SchemaNode>> = FileSchema.properties;
  if (Object.hasOwn(sections, name)) return `${name} at the top of the file`;
  const section = Object.keys(sections).find((key) => Object.hasOwn(sections[key]?.properties ?? {}, name));
  return section === undefined ? null : `${section}.${name}`;
}

/** One tree out of several, the first of which wins key by key. Lists are replaced whole. */
export function mergeLayers(layers: readonly Layer[]): Tree {
  const merge = (lower: Tree, upper: Tree): Tree => {
    const merged = { ...lower };
    for (const [key, value] of Object.entries(upper)) {
      const below = merged[key];
      merged[key] = isTree(value) && isTree(below) ? merge(below, value) : value;
    }
    return merged;
  };
  return layers.map(({ values }) => values).reduceRight((lower, upper) => merge(lower, upper), {});
}

/** The first layer that has a value at `path`. */
export function layerOf(layers: readonly Layer[], path: Path): Layer | undefined {
  return layers.find(({ values }) => {
    let at: unknown = values;
    for (const step of path) at = isTree(at) || Array.isArray(at) ? (at as Tree)[step] : undefined;
    return at !== undefined;
  });
}

function put(values: Tree, path: readonly string[], value: unknown): void {
  const [step, ...rest] = path;
  if (step === undefined) return;
  if (rest.length === 0) values[step] = value;
  else {
    const below = isTree(values[step]) ? values[step] : {};
    values[step] = below;
    put(below, rest, value);
  }
}
