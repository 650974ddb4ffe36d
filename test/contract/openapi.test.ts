import { readFileSync, writeFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { daemonDocument } from '../docs/openapi-daemon.ts';
import { exchangeDocument, renderDocument } from '../docs/openapi-exchange.ts';

const FOLDER = new URL('../../docs/openapi/', import.meta.url);
const DOCUMENTS = { 'daemon.yaml': daemonDocument, 'exchange.yaml': exchangeDocument };

describe.each(Object.entries(DOCUMENTS))('docs/openapi/%s', (name, describeIt) => {
  const file = new URL(name, FOLDER);

  it('is what the code checks with; else: UPDATE_DOCS=1 npx vitest run test/contract/openapi.test.ts', async () => {
    const now = renderDocument(await describeIt());
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, now);
    expect(readFileSync(file, 'utf8')).toBe(now);
  });

  it('is a valid OpenAPI document', async () => {
    const result = await new Validator().validate(
      parse(readFileSync(file, 'utf8')) as Record<string, unknown>,
    );
    expect(result.errors ?? []).toEqual([]);
    expect(result.valid).toBe(true);
  });
});
