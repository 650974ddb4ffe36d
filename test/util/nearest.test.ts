import { describe, expect, test } from 'vitest';
import { didYouMean, nearest, suggest } from '../../src/util/nearest.ts';

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
    expect(nearest('market', ['marketOrder', 'markat'])).toBe('markat');
    // What is short is everywhere.
    expect(nearest('usd', ['amount_in_usd'])).toBeNull();
    expect(nearest('ab', ['cd'])).toBeNull();
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
});

test('what was meant is asked for, and nothing where nobody knows', () => {
  expect(didYouMean('markt', ['market'])).toBe('; did you mean market?');
  expect(didYouMean('markt', ['timer'])).toBe('');
  expect(suggest(null)).toBe('');
});
