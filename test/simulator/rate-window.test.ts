import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRateWindow } from '../../src/simulator/rate-window.ts';

test('no stretch of the window ever holds more requests than the limit, and no request is refused in vain', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.nat(40), { maxLength: 80 }), (requests, gaps) => {
      const withinLimit = createRateWindow({ requests, windowMs: 100 });
      const accepted: number[] = [];
      let nowMs = 0;
      for (const gapMs of gaps) {
        nowMs += gapMs;
        const recent = accepted.filter((atMs) => nowMs - atMs < 100).length;
        const isAccepted = withinLimit(nowMs);
        expect(isAccepted).toBe(recent < requests);
        if (isAccepted) accepted.push(nowMs);
      }
    }),
  );
});

test('setting the clock back does not lock clients out until it has caught up', () => {
  const withinLimit = createRateWindow({ requests: 1, windowMs: 10_000 });
  expect(withinLimit(3_600_000)).toBe(true);
  expect(withinLimit(0)).toBe(true);
  expect(withinLimit(9_999)).toBe(false);
});
