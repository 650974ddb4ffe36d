import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { didYouMean, nearest, suggest } from '../../src/util/nearest.ts';

/** Slips of the pen between two words by their definition: a letter more, less, another one, or two swapped. */
function slips(one: string, other: string): number {
  if (one === '' || other === '') return one.length + other.length;
  if (one.at(-1) === other.at(-1)) return slips(one.slice(0, -1), other.slice(0, -1));
  const isSwapped = one.length > 1 && one.at(-1) === other.at(-2) && one.at(-2) === other.at(-1);
  return (
    1 +
    Math.min(
      slips(one.slice(0, -1), other),
      slips(one, other.slice(0, -1)),
      slips(one.slice(0, -1), other.slice(0, -1)),
      isSwapped ? slips(one.slice(0, -2), other.slice(0, -2)) : Number.POSITIVE_INFINITY,
    )
  );
}

describe('the name that was meant', () => {
  test.each([
    ['a letter too many', 'BTCC_USDT', 'BTC_USDT'],
    ['a letter too few', 'BT_USDT', 'BTC_USDT'],
    ['another letter', 'BTC_USDC', 'BTC_USDT'],
    ['two that are swapped at the beginning, and two at the end', 'TBC_USTD', 'BTC_USDT'],
    ['small letters', 'btc_usdt', 'BTC_USDT'],
    ['only its end', '/beat', '/v1/beat'],
    ['only its beginning', 'timeout', 'timeoutSeconds'],
    ['something behind it', 'timeoutSecondsOfAll', 'timeoutSeconds'],
    ['dashes in the place of capitals', 'kill-switch', 'syncKillSwitch'],
    ['only its first word', 'ttl', 'ttlSeconds'],
  ])('is found where it was written with %s', (_what, word, name) => {
    expect(nearest(word, [name])).toBe(name);
    expect(nearest(word, ['quite_another', name, 'and_one_more'])).toBe(name);
  });

  test('is the nearest, and of equal ones the first', () => {
    expect(nearest('market', ['markxxs', 'markt', 'margin'])).toBe('markt');
    expect(nearest('market', ['markat', 'markit'])).toBe('markat');
    // One slip in three letters at most.
    expect(nearest('abcdefghi', ['abcdefxyz'])).toBe('abcdefxyz');
    expect(nearest('abcdefghi', ['abcdewxyz'])).toBeNull();
    // A part is as near as one slip.
    expect(nearest('market', ['marxxt', 'marketOrder'])).toBe('marketOrder');
    expect(nearest('market', ['markat', 'marketOrder'])).toBe('markat');
  });

  test('is looked for among words of 64 letters at most, and among the first thousand', () => {
    const long = 'a'.repeat(64);
    expect(nearest(`${long.slice(1)}b`, [long])).toBe(long);
    expect(nearest(`${long}b`, [long])).toBeNull();
    expect(nearest(long, [`${long}b`])).toBeNull();
    const others = (count: number) => Array.from({ length: count }, () => 'zz');
    expect(nearest('market', [...others(999), 'markets'])).toBe('markets');
    expect(nearest('market', [...others(1000), 'markets'])).toBeNull();
  });

  test('is as many slips away as it takes to come from one to the other', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(word, word, (given, name) => {
        const isPart = [
          [given, name],
          [name, given],
        ].some(
          ([part = '', whole = '']) => part.length > 3 && (whole.startsWith(part) || whole.endsWith(part)),
        );
        const isMeant = (isPart || slips(given, name) <= 2) && (isPart || slips(given, name) < name.length);
        expect(nearest(given, [name])).toBe(isMeant ? name : null);
      }),
      { numRuns: 300, seed: 7 },
    );
  });
});

test('what was meant is asked for, and nothing where nobody knows', () => {
  expect(didYouMean('markt', ['market'])).toBe('; did you mean market?');
  expect(didYouMean('markt', ['timer'])).toBe('');
  expect(suggest(null)).toBe('');
});
