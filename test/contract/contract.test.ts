import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError, ArgumentError } from '../../src/exchange/errors.ts';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { ARGUMENTS } from '../../src/exchange/schemas.ts';
import { CASES } from './cases.ts';
import { ROWS, rowId } from './document.ts';
import { openClientSide, openRawSide } from './sides.ts';

describe.each(CASES)('$title', ({ check, options = {} }) => {
  it.each([
    ['for the client over HTTP', openClientSide],
    ['for a raw request in process', openRawSide],
  ])('%s', async (_how, open) => {
    const side = await open(options);
    await check(side);
    // Answers in which the exchange says that it is itself at fault: there must be none, whatever was asked.
    const refusals = side.exchange.log.since(0).filter((event) => event.kind === 'request-refused');
    expect(refusals.filter(({ status }) => status >= 500)).toEqual([]);
  });
});

describe('the suite', () => {
  it('has a case for each row of the document', () => {
    const checked = new Set(CASES.flatMap(({ rows }) => rows));
    expect(ROWS.map(rowId).filter((id) => !checked.has(id))).toEqual([]);
  });

  it('checks no row that the document does not have, and has no title twice', () => {
    const known = new Set(ROWS.map(rowId));
    expect(known.size).toBe(ROWS.length);
    expect(CASES.flatMap(({ rows }) => rows).filter((id) => !known.has(id))).toEqual([]);
    expect(new Set(CASES.map(({ title }) => title)).size).toBe(CASES.length);
  });
});

const NAMES = Object.keys(OPERATIONS) as OperationName[];
const FIELDS = Object.values(ARGUMENTS).flatMap((schema) =>
  'properties' in schema ? Object.keys(schema.properties) : ['__proto__'],
);
const likely = fc.constantFrom<unknown>('BTC_USDT', 'buy', 'quote', '10', 10, 60, null, 'USDT', '1h', [
  'spot',
]);
const anyRequest = fc.oneof(
  fc.dictionary(fc.constantFrom(...FIELDS), fc.oneof(likely, likely, fc.anything()), { maxKeys: 6 }),
  fc.anything(),
);

/** Null where the call resolved; else why it is no error that a caller could have expected, or an empty text. */
async function complaint(call: Promise<unknown>): Promise<string | null> {
  try {
    await call;
    return null;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof ArgumentError)) return `not named: ${String(error)}`;
    if (error.name === 'ApiError' || error.message.includes('\n')) return `${error.name}: ${error.message}`;
    return error.message.includes('demo-secret') ? 'shows the secret' : '';
  }
}

// What bytes do that come in place of a reply is in test/exchange/replies.test.ts.
it('anything given to the client is carried out or rejects with a named error, and then no balance has changed', async () => {
  const { client, exchange } = await openClientSide({ newAddresses: true });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...NAMES), anyRequest, async (name, given) => {
      const before = exchange.books();
      const isPublic = OPERATIONS[name].authentication === 'none';
      const method = client[name] as (request?: unknown) => Promise<unknown>;
      const found = await complaint(isPublic ? method() : method(given));
      expect(found ?? '').toBe('');
      if (found !== null) expect(exchange.books()).toEqual(before);
    }),
    { numRuns: 400 },
  );
}, 60_000);
