import { EnvironmentSchema, SETTINGS } from '../../src/config/environment.ts';
import { describeAllowed } from '../../src/config/problem.ts';
import { FileSchema, type SchemaNode } from '../../src/config/schema.ts';
import { code, table } from './markdown.ts';

interface Node extends SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly anyOf?: readonly Node[];
  readonly items?: Node;
}

const SECTIONS: Readonly<Record<string, Node>> = FileSchema.properties;
const VARIABLES: Readonly<Record<string, Node>> = EnvironmentSchema.properties;

const sectionsOf = () => Object.entries(SECTIONS).filter(([name]) => name !== '$schema');

function allowedOf(node: Node): string {
  if (node.enum !== undefined) return node.enum.map((value) => code(String(value))).join(', ');
  if (node.type === 'array' && node.items?.enum !== undefined) {
    return `a list of ${node.items.enum.map((value) => code(String(value))).join(', ')}`;
  }
  if (node.type === 'array') return 'a list';
  if (node.type === 'string') return `a text such as ${code(String(node.examples?.[0]))}`;
  return describeAllowed(node);
}

const defaultOf = (node: Node) => (node.default === undefined ? 'none' : code(JSON.stringify(node.default)));

function keyRows(prefix: string, properties: Readonly<Record<string, Node>>): string[][] {
  return Object.entries(properties).map(([key, node]) => [
    code(`${prefix}${key}`),
    allowedOf(node),
    defaultOf(node),
    variableOf(`${prefix}${key}`),
    node.description ?? '',
  ]);
}

function variableOf(key: string): string {
  const setting = SETTINGS.find(({ path }) => path?.join('.') === key);
  return setting === undefined ? '' : code(setting.variable);
}

const HEAD = ['Key', 'Allowed', 'Default', 'Variable', 'Meaning'];

/** One table for each section of the configuration file, by its name. */
export function sectionTables(): ReadonlyMap<string, string> {
  const tables = new Map<string, string>();
  const plain: string[][] = [];
  for (const [name, node] of sectionsOf()) {
    const market = node.items?.anyOf?.find(({ properties }) => properties !== undefined);
    if (market?.properties !== undefined) tables.set(name, table(HEAD, keyRows('', market.properties)));
    else if (node.properties !== undefined)
      tables.set(name, table(HEAD, keyRows(`${name}.`, node.properties)));
    else plain.push(...keyRows('', { [name]: node }));
  }
  tables.set('other', table(HEAD, plain));
  return tables;
}

/** Every key of the file as the tables name it. */
export const CONFIG_KEYS: readonly string[] = [...sectionTables().values()].flatMap((rows) =>
  [...rows.matchAll(/^\| `([\w.]+)`/gm)].map(([, key = '']) => key),
);

/** The variables that stand for no key of the tables, with their flag. */
export function environmentTable(): string {
  const rows = Object.entries(VARIABLES).flatMap(([variable, node]) => {
    const setting = SETTINGS.find((one) => one.variable === variable);
    if (CONFIG_KEYS.includes(setting?.path?.join('.') ?? '')) return [];
    const flag = setting?.flag == null ? '' : code(setting.flag.name);
    return [[code(variable), flag, node.description ?? '']];
  });
  return table(['Variable', 'Flag', 'Meaning'], rows);
}

/** Names of the variables that the daemon reads. */
export const VARIABLE_NAMES: readonly string[] = Object.keys(VARIABLES);
