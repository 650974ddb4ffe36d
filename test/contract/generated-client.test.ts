import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Ajv } from 'ajv';
import { generateSource } from 'oazapfts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { startExchange } from '../../src/library/simulator.ts';
import type { SimulatedServer } from '../../src/simulator/server.ts';
import { type Fields, fieldsOf } from '../exchange/samples.ts';
import { nextNonce } from '../simulator/raw-client.ts';
import { exchange as document, schemaOf } from './document.ts';
import { but } from './sides.ts';

/** As oazapfts makes them: body first where there is one, then options. */
type Call = (...given: readonly unknown[]) => Promise<{ readonly status: number; readonly data: unknown }>;

interface GeneratedClient extends Readonly<Record<OperationName, Call>> {
  readonly defaults: { baseUrl: string; fetch?: typeof fetch };
}

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const ajv = new Ajv({ strict: false });
const folder = mkdtempSync(join(tmpdir(), 'killswitchd-openapi-'));
let exchange: SimulatedServer;
let client: GeneratedClient;

/** What a user of a generated client adds: the headers that sign the body. */
const signing: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  if (typeof init?.body === 'string' && JSON.parse(init.body).nonce !== undefined) {
    const payload = encodePayload(init.body);
    headers.set('X-TXC-APIKEY', 'demo-key');
    headers.set('X-TXC-PAYLOAD', payload);
    headers.set('X-TXC-SIGNATURE', signPayload(payload, 'demo-secret'));
  } else headers.set('Authorization', 'Bearer demo-token');
  return fetch(input, { ...init, headers });
};

beforeAll(async () => {
  exchange = await startExchange({ exchange: { newAddresses: true } });
  const source = await generateSource('docs/openapi/exchange.yaml');
  const file = join(folder, 'client.ts');
  const installed = (_quoted: string, name: string) => JSON.stringify(import.meta.resolve(name));
  writeFileSync(file, source.replaceAll(/"(@oazapfts\/runtime[^"]*)"/g, installed));
  client = (await import(pathToFileURL(file).href)) as GeneratedClient;
  Object.assign(client.defaults, { baseUrl: exchange.url, fetch: signing });
});

afterAll(async () => {
  await exchange.close();
  rmSync(folder, { recursive: true });
});

function ask(name: OperationName, fields: Fields) {
  const { authentication, path } = OPERATIONS[name];
  if (authentication === 'none') return client[name]();
  const signed = { ...fields, request: path, nonce: nextNonce() };
  return client[name](authentication === 'signed' ? signed : fields);
}

describe('a client that a generator made of docs/openapi/exchange.yaml', () => {
  it.each(NAMES)('calls %s, and is answered as the document says', async (name) => {
    const { path, method } = OPERATIONS[name];
    const { status, data } = await ask(name, fieldsOf(name));
    expect({ status, data }).toMatchObject({ status: 200 });
    const { 200: described } = document.of(path, method.toLowerCase()).responses;
    expect(described && ajv.validate(schemaOf(described), data), ajv.errorsText()).toBe(true);
  });

  it('is refused with the error object of the document', async () => {
    const { status, data } = await ask('syncKillSwitch', but('syncKillSwitch', { timeout: '4' }));
    expect(status).toBe(422);
    const errors = { timeout: expect.anything() as unknown };
    expect(data).toMatchObject({ code: 30, message: 'Validation failed', errors });
  });
});
