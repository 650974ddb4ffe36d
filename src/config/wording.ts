import { didYouMean } from '../util/nearest.ts';

/** What this module reads of a JSON Schema node. */
export interface SchemaNode {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/** A longer text is described instead of shown: nobody finds a mistake in it, and it may be a secret in the wrong place. */
const LONGEST_SHOWN = 60;

/** A value as a message shows it: short texts quoted, everything else named. */
export function describe(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return 'a section with keys';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return `a ${typeof value}`;
  if (value === '') return 'an empty text';
  return value.length > LONGEST_SHOWN ? `a text of ${value.length} characters` : JSON.stringify(value);
}

/** What a schema node allows, in words. */
export function describeAllowed(node: SchemaNode): string {
  if (node.enum !== undefined) return node.enum.join(', ');
  if (node.anyOf !== undefined) return node.anyOf.map(describeAllowed).join(', or ');
  switch (node.type) {
    case 'integer':
      return `a whole number${describeBounds(node)}`;
    case 'number':
      return `a number${describeBounds(node)}`;
    case 'boolean':
      return 'true or false';
    case 'array':
      return node.items?.enum === undefined
        ? `a list such as ${JSON.stringify(node.examples?.[0])}`
        : `a list of one or more of ${describeAllowed(node.items)}`;
    case 'object':
      return `a section with the keys ${Object.keys(node.properties ?? {}).join(', ')}`;
    default:
      return `a text such as ${String(node.examples?.[0])}`;
  }
}

function describeBounds(node: SchemaNode): string {
  return node.minimum === undefined || node.maximum === undefined
    ? ''
    : ` from ${node.minimum} to ${node.maximum}`;
}

const SECONDS_OF_UNIT = { '': 1, s: 1, sec: 1, m: 60, min: 60, h: 3600 } as const;

/**
 * What to write instead of `value`, as the last part of a message, or an empty text where nothing suggests itself:
 * a number for `"60s"`, `true` for `"yes"`, the nearest of an enumeration.
 */
export function suggestInstead(value: unknown, node: SchemaNode): string {
  if (value === null || value === undefined) return '; write a value or leave the key out';
  if (typeof value !== 'string') return '';
  if (node.enum !== undefined) return didYouMean(value, node.enum.map(String));
  if (node.type === 'boolean') {
    if (/^(yes|on|true)$/i.test(value)) return '; write true';
    return /^(no|off|false)$/i.test(value) ? '; write false' : '';
  }
  if (node.type !== 'integer' && node.type !== 'number') return '';
  const match = /^\s*(\d+(?:\.\d+)?)\s*(|s|sec|m|min|h)\s*$/.exec(value);
  if (match === null) return '';
  const seconds = Number(match[1]) * SECONDS_OF_UNIT[match[2] as keyof typeof SECONDS_OF_UNIT];
  const fits =
    seconds >= (node.minimum ?? -Infinity) &&
    seconds <= (node.maximum ?? Infinity) &&
    (node.type === 'number' || Number.isInteger(seconds));
  return fits ? `; write ${seconds}` : '';
}
