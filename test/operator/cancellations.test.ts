import { expect, test } from 'vitest';
import type { Notice } from '../../src/core/notice.ts';
import { createCancellations } from '../../src/operator/cancellations.ts';
import { EVERY_NOTICE } from '../telemetry/every-notice.ts';

const market = 'BTC_USDT';
const overdue = { ...EVERY_NOTICE.overdue, expiryWallMs: 1000 };
const { lapsed, renewed, deleted } = EVERY_NOTICE;
const fired = { kind: 'fired', market, why: 'bot_stale', firedByWallMs: 4000 } as const;
const tripped = { kind: 'tripped', market, why: 'tripped', durationMs: 1, firesByWallMs: 6000 } as const;

const reloads: readonly Notice[] = [
  { kind: 'reloaded', added: [], removed: [market], changed: [] },
  { kind: 'removed', market, how: 'fired' },
];
const late = { ...deleted, mayHaveFired: true };
const perhaps = { ...lapsed, certainty: 'possible' } as const;
const trippedAndFired = { ...fired, why: 'tripped', firedByWallMs: 6100 } as const;

test.each<[string, readonly Notice[], string | null]>([
  ['a renewal that is overdue may have cost the orders', [overdue], 'possible unrenewed by 1000, 1 times'],
  ['one that was confirmed after all cost nothing', [overdue, renewed], null],
  [
    'a timer that was left to fire, and is wanted again about then, whatever is armed after that',
    [tripped, { ...overdue, leftToFire: true }, renewed],
    'possible unrenewed by 1000, 1 times',
  ],
  ['a lapse is said once', [overdue, lapsed, renewed], 'certain unrenewed by 5000, 1 times'],
  [
    'what may have lapsed, since it was overdue',
    [overdue, perhaps, renewed],
    'possible unrenewed by 1000, 1 times',
  ],
  ['a dead bot', [fired], 'certain bot_stale by 4000, 1 times'],
  ['a trip that has fired is the same trip', [tripped, trippedAndFired], 'certain tripped by 6100, 1 times'],
  [
    "the trip of a dead bot is no operator's",
    [{ ...tripped, why: 'bot_stale' }, fired],
    'certain bot_stale by 4000, 1 times',
  ],
  [
    'the trip of a dead bot that came back',
    [{ ...tripped, why: 'bot_failed' }],
    'certain bot_failed by 6000, 1 times',
  ],
  ['a trip that somebody took back before it fired', [tripped, renewed], null],
  [
    'one that was taken back late',
    [{ ...tripped, durationMs: 4000 }, renewed],
    'possible tripped by 6000, 1 times',
  ],
  ['a trip whose timer was deleted in time', [fired, tripped, deleted], 'certain bot_stale by 4000, 1 times'],
  ['a delete that came too late', [late], 'possible deleted_late by 5000, 1 times'],
  [
    'a timer that ran out before its delete',
    [{ ...fired, why: 'undeleted' }, late],
    'possible deleted_late by 5000, 1 times',
  ],
  ['a delete in time', [deleted], null],
  [
    'every further time',
    [fired, renewed, lapsed, renewed, overdue, renewed],
    'certain unrenewed by 5000, 2 times',
  ],
  ['a reload takes nothing away', [fired, ...reloads], 'certain bot_stale by 4000, 1 times'],
])('%s', (_, notices, expected) => {
  const record = createCancellations();
  for (const notice of notices) record.observe(notice, { wallMs: 5000 });
  const said = record
    .list()
    .map(({ certainty, why, byWallMs, count }) => `${certainty} ${why} by ${byWallMs}, ${count} times`);
  expect(said).toEqual(expected === null ? [] : [expected]);
});

test('stays until it is acknowledged, market by market or as a whole', () => {
  const record = createCancellations();
  for (const name of ['A', 'B', 'C']) record.observe({ ...fired, market: name }, { wallMs: 5000 });
  expect(record.list().map((one) => one.market)).toEqual(['C', 'B', 'A']);
  expect(record.acknowledge(['B', 'X'])).toEqual(['B']);
  expect(record.acknowledge(null)).toEqual(['A', 'C']);
  expect(record.acknowledge(null)).toEqual([]);
  expect(record.list()).toEqual([]);
});
