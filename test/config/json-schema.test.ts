import { Type as Typebox } from 'typebox';
import { expect, test } from 'vitest';
import { Type } from '../../src/config/json-schema.ts';

/** A schema with every form that the configuration uses. */
const made = (build: typeof Type) =>
  build.Object(
    {
      needed: build.String({ minLength: 1 }),
      left: build.Optional(build.Integer({ minimum: 5 })),
      list: build.Array(build.Enum(['a', 'b'], { description: 'one' }), { uniqueItems: true }),
      either: build.Optional(
        build.Union([build.Boolean(), build.Number({ default: 2 })], { description: 'two' }),
      ),
      inner: build.Object({ all: build.Optional(build.Boolean()) }, { additionalProperties: false }),
    },
    { additionalProperties: false, description: 'three' },
  );

test('the schemas of the configuration are the same JSON Schema as typebox itself makes', () => {
  expect(JSON.parse(JSON.stringify(made(Type)))).toEqual(JSON.parse(JSON.stringify(made(Typebox))));
});

test('a field that is optional in one place is asked for in another', () => {
  const name = Type.String();
  const either = Type.Object({ first: Type.Optional(name), second: name });
  expect(either).toHaveProperty('required', ['second']);
});
