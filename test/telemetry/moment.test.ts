import fc from 'fast-check';
import { expect, test } from 'vitest';
import { durationText, isoTime, momentText } from '../../src/telemetry/moment.ts';

test.each([
  [0, '0 ms'],
  [12.4, '12 ms'],
  [999.9, '1 s'],
  [2500, '2.5 s'],
  [9999, '10 s'],
  [52_400, '52 s'],
  [120_000, '2 min'],
  [250_000, '4 min 10 s'],
  [7_500_000, '2 h 5 min'],
])('%d ms reads %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test('moments are ISO times for machines, and times of day with their distance for people', () => {
  expect(isoTime(1_795_000_000_123)).toBe('2026-11-18T11:06:40.123Z');
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z');
  expect(momentText(1_795_000_052_000, 1_795_000_000_000)).toBe('11:07:32 UTC (in 52 s)');
  expect(momentText(1_795_000_000_000, 1_795_000_012_000)).toBe('11:06:40 UTC (12 s ago)');
});

test('every moment of four-digit years reads as the language itself writes it', () => {
  const leapDays = ['2000-02-29', '2024-02-29', '2100-02-28', '2100-03-01'].map((day) => Date.parse(day));
  const moments = fc.oneof(
    fc.integer({ min: Date.parse('0000-01-01'), max: Date.parse('9999-12-31') }),
    fc.constantFrom(...leapDays, ...leapDays.map((ms) => ms - 1), -1),
  );
  fc.assert(
    fc.property(moments, (ms) => {
      expect(isoTime(ms)).toBe(new Date(ms).toISOString());
    }),
    { numRuns: 2000 },
  );
});
