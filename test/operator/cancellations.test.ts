import { expect, test } from 'vitest';
import type { Notice } from '../../src/core/notice.ts';
import { createCancellations } from '../../src/operator/cancellations.ts';
import { EVERY_NOTICE } from '../telemetry/every-notice.ts';

const market = 'BTC_USDT';
const overdue = { ...EVERY_NOTICE.overdue, expiryWallMs: 1000 };
const { lapsed, renewed, deleted } = EVERY_NOTICE;
const fired = { kind: 'fired', market, why: 'bot_stale', firedByWallMs: 4000 } as const;
const tripped = { kind: 'tripped', market, why: 'tripped', durationMs: 1, firesByWallMs: 6000 } as const;

test.each<[string, readonly Notice[], object | null]>([
  [
    'a renewal that is overdue may have cost the orders',
    [overdue],
    { certainty: 'possible', why: 'unrenewed', byWallMs: 1000, count: 1 },
  ],
  ['one that was confirmed after all cost nothing', [overdue, renewed], null],
  [
    'a lapse is said once, whether it was overdue before or not',
    [overdue, lapsed, renewed],
    { certainty: 'certain', why: 'unrenewed', byWallMs: 5000, count: 1 },
  ],
  [
    'what may have lapsed may have done so since it was overdue',
    [overdue, { ...lapsed, certainty: 'possible' }, renewed],
    { certainty: 'possible', why: 'unrenewed', byWallMs: 1000, count: 1 },
  ],
  ['a dead bot', [fired], { certainty: 'certain', why: 'bot_stale', byWallMs: 4000, count: 1 }],
  [
    'a trip that has fired is the same trip',
    [tripped, { ...fired, why: 'tripped', firedByWallMs: 6100 }],
    { why: 'tripped', byWallMs: 6100, count: 1 },
  ],
  [
    "the trip of a dead bot that has fired is no operator's",
    [{ ...tripped, why: 'bot_stale' }, fired],
    { why: 'bot_stale', byWallMs: 4000, count: 1 },
  ],
  ['the trip of a dead bot that came back', [{ ...tripped, why: 'bot_failed' }], { why: 'bot_failed' }],
  ['a trip that somebody took back before it fired', [tripped, renewed], null],
  [
    'a trip that was taken back when it may have fired',
    [{ ...tripped, durationMs: 4000 }, renewed],
    { certainty: 'possible', why: 'tripped', count: 1 },
  ],
  ['a trip whose timer was deleted in time', [fired, tripped, deleted], { why: 'bot_stale', count: 1 }],
  [
    'a delete that came too late',
    [{ ...deleted, mayHaveFired: true }],
    { certainty: 'possible', why: 'deleted_late', count: 1 },
  ],
  [
    'a timer that ran out before its delete was confirmed, and the late answer to that',
    [
      { ...fired, why: 'undeleted' },
      { ...deleted, mayHaveFired: true },
    ],
    { certainty: 'possible', why: 'deleted_late', count: 1 },
  ],
  ['a delete in time', [deleted], null],
  [
    'every further time is counted',
    [fired, renewed, lapsed, renewed, overdue, renewed],
    { why: 'unrenewed', count: 2 },
  ],
  [
    'a reload takes nothing away',
    [
      fired,
      { kind: 'reloaded', added: [], removed: [market], changed: [] },
      { kind: 'removed', market, how: 'fired' },
    ],
    { why: 'bot_stale', count: 1 },
  ],
])('%s', (_, notices, expected) => {
  const record = createCancellations();
  for (const notice of notices) record.observe(notice, { wallMs: 5000 });
  if (expected === null) expect(record.list()).toEqual([]);
  else expect(record.list()).toMatchObject([{ market, ...expected }]);
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
