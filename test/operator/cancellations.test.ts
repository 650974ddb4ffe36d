import { expect, test } from 'vitest';
import type { Notice } from '../../src/core/notice.ts';
import { createCancellations } from '../../src/operator/cancellations.ts';
import { EVERY_NOTICE } from '../telemetry/every-notice.ts';

const market = 'BTC_USDT';
const overdue = { ...EVERY_NOTICE.overdue, expiryWallMs: 1000 };
const { lapsed, renewed, deleted } = EVERY_NOTICE;
const fired = { kind: 'fired', market, why: 'bot_stale', firedByWallMs: 4000 } as const;
const tripped = {
  kind: 'tripped',
  market,
  why: 'tripped',
  durationMs: 1,
  firesByWallMs: 6000,
  isFinal: true,
} as const;

const reloads: readonly Notice[] = [
  { kind: 'reloaded', added: [], removed: [market], changed: [] },
  { kind: 'removed', market, how: 'fired', firesByWallMs: null, confirmed: false },
];
const leftToFire = { ...overdue, leftToFire: true };
const tripOf = (why: 'bot_stale' | 'bot_failed'): Notice => ({ ...tripped, why });
const undeleted = { ...fired, why: 'undeleted' } as const;
const late = { ...deleted, mayHaveFired: true };
const perhaps = { ...lapsed, certainty: 'possible' } as const;
const trippedAndFired = { ...fired, why: 'tripped', firedByWallMs: 6100 } as const;

test.each<[string, readonly Notice[], string | null]>([
  ['a renewal that is overdue may have cost the orders', [overdue], 'possible unrenewed 1000 x1'],
  ['one that was confirmed after all cost nothing', [overdue, renewed], null],
  [
    'a timer left to fire, and wanted again too late',
    [tripped, leftToFire, renewed],
    'possible unrenewed 1000 x1',
  ],
  ['a lapse is said once', [overdue, lapsed, renewed], 'certain unrenewed 5000 x1'],
  ['what may have lapsed, since it was overdue', [overdue, perhaps, renewed], 'possible unrenewed 1000 x1'],
  ['a dead bot', [fired], 'certain bot_stale 4000 x1'],
  ['a trip that has fired is the same trip', [tripped, trippedAndFired], 'certain tripped 6100 x1'],
  ["the trip of a dead bot is no operator's", [tripOf('bot_stale'), fired], 'certain bot_stale 4000 x1'],
  ['the trip of a dead bot that came back', [tripOf('bot_failed')], 'certain bot_failed 6000 x1'],
  ['a trip that somebody took back before it fired', [tripped, renewed], null],
  ['one that was taken back late', [{ ...tripped, durationMs: 4000 }, renewed], 'possible tripped 6000 x1'],
  ['a trip whose timer was deleted in time', [fired, tripped, deleted], 'certain bot_stale 4000 x1'],
  ['a delete that came too late', [late], 'possible deleted_late 5000 x1'],
  ['a timer that ran out before its delete', [undeleted, late], 'possible deleted_late 5000 x1'],
  ['a delete in time', [deleted], null],
  [
    'every further time, by its reason',
    [lapsed, renewed, fired, renewed, lapsed, renewed, overdue, renewed],
    'certain unrenewed 5000 x2, certain bot_stale 4000 x1',
  ],
  [
    'a timer that lapsed before it was tripped',
    [overdue, perhaps, tripped, trippedAndFired],
    'certain tripped 6100 x1, possible unrenewed 1000 x1',
  ],
  [
    'one that was overdue, and stood when it was tripped',
    [overdue, tripped, trippedAndFired],
    'certain tripped 6100 x1',
  ],
  ['one that lapsed before its delete', [overdue, perhaps, late], 'possible unrenewed 1000 x1'],
  ['a reload takes nothing away', [fired, ...reloads], 'certain bot_stale 4000 x1'],
])('%s', (_, notices, expected) => {
  const record = createCancellations();
  for (const notice of notices) record.observe(notice, { wallMs: 5000 });
  const said = record
    .list()
    .map(({ certainty, why, byWallMs, count }) => `${certainty} ${why} ${byWallMs} x${count}`);
  expect(said.join(', ')).toBe(expected ?? '');
});

test('stays until it is acknowledged, market by market or as a whole', () => {
  const record = createCancellations();
  for (const name of ['A', 'B', 'C']) record.observe({ ...fired, market: name }, { wallMs: 5000 });
  expect(record.list().map((one) => one.market)).toEqual(['C', 'B', 'A']);
  expect(record.acknowledge(['B', 'X'])).toEqual({ acknowledged: ['B'], notYet: [] });
  expect(record.acknowledge(null)).toEqual({ acknowledged: ['A', 'C'], notYet: [] });
  expect(record.acknowledge(null)).toEqual({ acknowledged: [], notYet: [] });
  expect(record.list()).toEqual([]);
});

test('cannot be acknowledged before it has happened, and counts anew from then on', () => {
  const record = createCancellations();
  for (const notice of [lapsed, renewed, overdue]) record.observe(notice, { wallMs: 5000 });
  expect(record.acknowledge(null)).toEqual({ acknowledged: [], notYet: [market] });
  expect(record.list()).toMatchObject([{ why: 'unrenewed', certainty: 'possible', count: 1 }]);
  record.observe(renewed, { wallMs: 6000 });
  expect(record.list()).toEqual([]);
});
