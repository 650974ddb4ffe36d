import { expect, test } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { createRecentEvents } from '../../src/telemetry/recent-events.ts';
import { EVERY_NOTICE } from './every-notice.ts';

const clock = createSystemClock();

test('recent events are what a person wants to read, the newest first, and no more than fit', () => {
  const recent = createRecentEvents({ bases: ['http://127.0.0.1:1'] }, 5);
  const now = clock.now();
  for (const [index, notice] of Object.values(EVERY_NOTICE).entries()) {
    recent.observe(notice, { ...now, wallMs: index });
  }
  const events = recent.list();
  expect(events).toHaveLength(5);
  expect(events[0]).toMatchObject({ event: 'stopped', level: 'error', market: null });
  expect(events[1]).toMatchObject({ event: 'deleted', level: 'info', market: 'BTC_USDT' });
  expect(events.map(({ atWallMs }) => atWallMs)).toEqual(
    events.map(({ atWallMs }) => atWallMs).toSorted((one, other) => other - one),
  );
});

test('renewals do not push the events out', () => {
  const recent = createRecentEvents({ bases: [] }, 5);
  recent.observe(EVERY_NOTICE.lapsed, clock.now());
  for (let index = 0; index < 100; index += 1) recent.observe(EVERY_NOTICE.renewed, clock.now());
  expect(recent.list().map(({ event }) => event)).toEqual(['lapsed']);
});
