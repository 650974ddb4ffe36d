import { EnvironmentSchema, SETTINGS } from '../../src/config/environment.ts';
import { describeAllowed } from '../../src/config/problem.ts';
import { FileSchema, type SchemaNode } from '../../src/config/schema.ts';
import { read } from './documents.ts';
import { code, table } from './markdown.ts';

interface Node extends SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
}

/** What goes wrong with a value that is allowed and wrong for the reader, by key. */
export const KEY_RISKS: Readonly<Record<string, string>> = JSON.parse(read('test/docs/key-risks.json'));

const SECTIONS: Readonly<Record<string, Node>> = FileSchema.properties;
const VARIABLES: Readonly<Record<string, Node>> = EnvironmentSchema.properties;

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
    KEY_RISKS[`${prefix}${key}`] ?? '',
  ]);
}

function variableOf(key: string): string {
  const setting = SETTINGS.find(({ path }) => path?.join('.') === key);
  if (setting === undefined) return '';
  return [setting.variable, ...(setting.flag === null ? [] : [setting.flag.name])].map(code).join(', ');
}

const KEY_ROWS = Object.entries(SECTIONS).flatMap(([name, node]) => {
  if (name === '$schema') return [];
  if (node.items?.properties !== undefined) return keyRows(`${name}[].`, node.items.properties);
  return node.properties === undefined ? keyRows('', { [name]: node }) : keyRows(`${name}.`, node.properties);
});

/** Every key of the configuration file. */
export const keyTable = () =>
  table(['Key', 'Allowed', 'Default', 'Variable, flag', 'Meaning', 'What goes wrong'], KEY_ROWS);

/** Every key of the file as the table names it. */
export const CONFIG_KEYS: readonly string[] = KEY_ROWS.map(([key = '']) => key.replaceAll('`', ''));

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
