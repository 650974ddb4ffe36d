import { didYouMean } from '../util/nearest.ts';
import { counted, describeValue } from '../util/text.ts';
import type { SchemaNode } from './schema.ts';

/** A tree of plain values, as YAML or JSON gives it. */
export type Tree = Record<string, unknown>;

/** Keys and list positions that lead to a value: `['markets', 1, 'timeoutSeconds']`. */
export type Path = readonly (string | number)[];

/** What is wrong with a value: what was found, what is allowed and what was probably meant. */
export interface Mistake {
  readonly path: Path;
  readonly text: string;
  /** Nobody knows what the value is: it may be a secret. */
  readonly keyOnly?: boolean;
}

/** Where a value stands, for a message and for the order of messages. */
export interface Place {
  /** `killswitchd.yaml:4:3 markets[1].timeoutSeconds`, `KILLSWITCHD_MARKETS[1]`, `--timeout-seconds`. */
  readonly label: string;
  /** Flags first, then the environment, the file, and last what is missing everywhere. */
  readonly rank: number;
  /** Order within the rank: position in the file, or in the table of variables. */
  readonly offset: number;
  /** The line of the file with a mark under the value, for a terminal. */
  readonly excerpt?: (keyOnly: boolean) => readonly string[];
}

/** One mistake of a configuration with its place. The path, where there is one, is that in the shape of the file. */
export interface Problem extends Partial<Mistake> {
  readonly text: string;
  readonly place: Place;
}

/** What was checked: its value, or what was found, what is allowed and what was probably meant. */
export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'wrong'; readonly text: string };

export const ok = <T>(value: T): Checked<T> => ({ kind: 'ok', value });
export const wrong = (text: string): Checked<never> => ({ kind: 'wrong', text });

export const RANK = { flag: 0, environment: 1, file: 2, missing: 3 } as const;

/** `markets[1].timeoutSeconds`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? step : `${text}.${step}`;
  }, '');
}

/** Nobody reads more, and to explain each of 70,000 holds up renewals for seconds. */
export const MOST_TOLD = 100;

/** The messages in the order of their places, each once, at most 100; for a terminal with the line of the file below. */
export function listProblems(problems: readonly Problem[], isTerminal = false): string[] {
  const below = ({ place, keyOnly = false }: Problem) => (isTerminal && place.excerpt?.(keyOnly)) || [];
  const told = problems
    .toSorted(({ place: one }, { place: other }) => one.rank - other.rank || one.offset - other.offset)
    .slice(0, MOST_TOLD)
    .map((problem) => [`${problem.place.label}: ${problem.text}`, ...below(problem)].join('\n'));
  const more = problems.length - MOST_TOLD;
  return [...new Set(told), ...(more > 0 ? [`and ${counted(more, 'more mistake')}`] : [])];
}

/** A value as a message about a file or a variable shows it. */
export const describe = (value: unknown) => describeValue(value, 'nothing', 'a section with keys');

export const firstOf = (names: readonly string[]) =>
  `${names.slice(0, 5).join(', ')}${names.length > 5 ? ', ...' : ''}`;

/** What a schema node allows, in words. */
export function describeAllowed(node: SchemaNode): string {
  if (node.enum !== undefined) return node.enum.join(', ');
  if (typeof node.type === 'object')
    return node.type.map((type) => describeAllowed({ ...node, type })).join(', or ');
  if (node.items?.enum !== undefined) return `a list of one or more of ${describeAllowed(node.items)}`;
  const { type = '', minimum, maximum, properties = {}, examples: [example] = [] } = node;
  const bounds = minimum === undefined || maximum === undefined ? '' : ` from ${minimum} to ${maximum}`;
  const words: Readonly<Record<string, string>> = {
    integer: `a whole number${bounds}`,
    number: `a number${bounds}`,
    boolean: 'true or false',
    array: `a list such as ${JSON.stringify(example)}`,
    object: `a section with the keys ${Object.keys(properties).join(', ')}`,
  };
  return words[type] ?? `a text such as ${String(example)}`;
}

const SECONDS_OF_UNIT: Readonly<Record<string, number>> = { '': 1, s: 1, sec: 1, m: 60, min: 60, h: 3600 };

/** The end of a message, or an empty text: a number for `"60s"`, `true` for `"yes"`, the nearest of an enumeration. */
export function suggestInstead(value: unknown, node: SchemaNode): string {
  if (value === null || value === undefined) return '; write a value or leave the key out';
  if (typeof value !== 'string') return '';
  if (node.enum !== undefined) return didYouMean(value, node.enum.map(String));
  if (node.type === 'boolean') {
    if (/^(yes|on|true)$/i.test(value)) return '; write true';
    return /^(no|off|false)$/i.test(value) ? '; write false' : '';
  }
  const { type, minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = node;
  const [, number, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*(|s|sec|m|min|h)\s*$/.exec(value) ?? [];
  const seconds = Number(number) * (SECONDS_OF_UNIT[unit] ?? Number.NaN);
  const isOfType = type === 'number' || (type === 'integer' && Number.isInteger(seconds));
  return isOfType && seconds >= minimum && seconds <= maximum ? `; write ${seconds}` : '';
}
