import { describe, expect, it } from 'vitest';
import { CASES } from './cases.ts';
import { ROWS, rowId } from './document.ts';
import { type AnySide, openClientSide, openRawSide } from './sides.ts';

/** Answers in which the exchange said that it is itself at fault: there must be none, whatever was asked. */
function faultsOf({ exchange }: AnySide) {
  const refusals = exchange.log.since(0).filter((event) => event.kind === 'request-refused');
  return refusals.filter(({ status }) => status >= 500);
}

describe.each(CASES)('$title', ({ check, options = {} }) => {
  it('for the client over HTTP', async () => {
    const side = await openClientSide(options);
    await check(side);
    expect(faultsOf(side)).toEqual([]);
  });

  it('for a raw request in process', async () => {
    const side = openRawSide(options);
    await check(side);
    expect(faultsOf(side)).toEqual([]);
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
