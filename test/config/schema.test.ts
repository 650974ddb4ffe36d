import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { SCHEMAS } from '../../src/cli/manual.ts';
import type { SchemaNode } from '../../src/config/schema.ts';
import { ask } from '../docs/program.ts';
import { ENVIRONMENT, loadWell, SECRETS } from './fixture.ts';

const EXAMPLE = 'config/killswitchd.example.yaml';

/** Every named property below a node, with its path. */
function properties(node: SchemaNode, path: string): [string, SchemaNode][] {
  const own = Object.entries(node.properties ?? {}).flatMap(([key, property]): [string, SchemaNode][] => [
    [`${path}${key}`, property],
    ...properties(property, `${path}${key}.`),
  ]);
  const branches = node.items === undefined ? [] : [node.items];
  return [...own, ...branches.flatMap((branch) => properties(branch, `${path}[].`))];
}

const readText = (path: string) => readFileSync(path, 'utf8');
const publishedFile = (): SchemaNode => JSON.parse(readText('config/killswitchd.schema.json')) as SchemaNode;

const shown = (config: object): unknown => JSON.parse(JSON.stringify(config));
const ajv = new Ajv({ allowUnionTypes: true });
const accepts = (schema: object, values: unknown) => ajv.validate(schema, values);

describe('the published JSON Schema', () => {
  it('is the one that the daemon checks files against (else: killswitchd schema > config/killswitchd.schema.json)', () => {
    expect(JSON.stringify(publishedFile())).toBe(JSON.stringify(SCHEMAS.config));
    expect(publishedFile()).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#' });
  });

  it.each([
    ['config', SCHEMAS.config],
    ['env', SCHEMAS.env],
  ])('is what schema %s prints, and explains every key with an example', async (what, schema) => {
    expect((await ask(['schema', what])).out).toBe(JSON.stringify(schema, null, 2));
    const all = properties(schema as SchemaNode, '');
    expect(all.length).toBeGreaterThan(10);
    for (const [path, { description, properties: inner, examples }] of all) {
      expect(description, path).toBeTruthy();
      if (inner === undefined) expect(examples?.length, path).toBeGreaterThan(0);
    }
  });

  it('states defaults and examples that it accepts itself', () => {
    for (const [path, node] of properties(SCHEMAS.config as SchemaNode, '')) {
      for (const value of [...(node.examples ?? []), ...(node.default === undefined ? [] : [node.default])]) {
        expect(accepts(node, value), `${path}: ${JSON.stringify(value)}`).toBe(true);
      }
    }
  });

  it.each([EXAMPLE, 'config/local.yaml', 'config/demo.yaml'])(
    'accepts %s, whose first line leads editors to it',
    (path) => {
      expect(accepts(publishedFile(), parse(readText(path)))).toBe(true);
      expect(readText(path).split('\n')[0]).toBe('# yaml-language-server: $schema=./killswitchd.schema.json');
    },
  );
});

describe('the configurations that come with the daemon', () => {
  it('shows every key of the file in the example, commented out where there is nothing to write', () => {
    const text = readText(EXAMPLE);
    const keys = properties(SCHEMAS.config as SchemaNode, '').map(([path]) => path.split('.').at(-1) ?? '');
    const absent = keys.filter((key) => key !== '$schema' && !text.includes(`${key}:`));
    expect(absent).toEqual([]);
  });

  it('says in the example between which bounds a value may lie, as the schema does', () => {
    const allowed = properties(SCHEMAS.config as SchemaNode, '').map(
      ([path, { minimum, maximum }]) => `${path.split('.').at(-1)}: ${minimum} to ${maximum}`,
    );
    const said = [...readText(EXAMPLE).matchAll(/ ([\d.]+ to \d+)\.[^\n]*\n +(\w+:)/g)];
    expect(said.length).toBeGreaterThan(10);
    expect(said.map(([, bounds, key]) => `${key} ${bounds}`).filter((one) => !allowed.includes(one))).toEqual(
      [],
    );
  });

  it('loads the example without a mistake, and every value that it writes is the default or cannot have one', () => {
    const example = loadWell(null, SECRETS, { config: EXAMPLE });
    const bare = loadWell(null, {
      ...ENVIRONMENT,
      KILLSWITCHD_LIVENESS_MODE: 'beat',
      KILLSWITCHD_CONTROL_LISTEN: 'unix:/run/killswitchd/control.sock',
    });
    const { markets: _own, fleet: _fleet, file: _file, ...rest } = example.config;
    const { markets: _one, fleet: _ones, file: _none, ...defaults } = bare.config;
    expect(shown(rest)).toEqual(shown(defaults));
  });
});
