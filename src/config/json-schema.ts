import type { Type as Builder } from 'typebox';

type Used = Pick<
  typeof Builder,
  'Array' | 'Boolean' | 'Enum' | 'Integer' | 'Number' | 'Object' | 'Optional' | 'String' | 'Union'
>;
type Schema = Readonly<Record<string, unknown>>;

const optional = new WeakSet<Schema>();

const builder = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Schema) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly string[], options?: Schema) => ({ enum: values, ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Number: (options?: Schema) => ({ type: 'number', ...options }),
  Object(properties: Readonly<Record<string, Schema>>, options?: Schema) {
    const required = Object.entries(properties).flatMap(([key, of]) => (optional.has(of) ? [] : [key]));
    return { type: 'object', ...(required.length > 0 ? { required } : {}), properties, ...options };
  },
  Optional(schema: Schema) {
    const copy = { ...schema };
    optional.add(copy);
    return copy;
  },
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Union: (forms: readonly Schema[], options?: Schema) => ({ anyOf: forms, ...options }),
};

/**
 * What the configuration needs of typebox, with its types and the same JSON Schema as its result. typebox itself is one
 * module per type, 373 of them, and the first timer would wait until all are read.
 */
export const Type = builder as unknown as Used;
