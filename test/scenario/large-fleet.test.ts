import { expect, test } from 'vitest';
import { createKeeper } from '../../src/keeper.ts';
import type { Exchange } from '../../src/ports.ts';
import { coreSettings } from '../core/core-settings.ts';
import { createHostClock, createTimeline } from '../simulation/virtual-clock.ts';

const ROUND_TRIP_MS = 20;
const MARKETS = Array.from({ length: 500 }, (_, index) => `M${index}_USDT`);

/** A fleet that arms in one burst and then uses most of its budget; when each of its requests was written. */
function runFleet(requests: number, forMs: number): Map<string, number[]> {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: 1_700_000_000_000 });
  const written = new Map<string, number[]>(MARKETS.map((market) => [market, []]));
  const exchange: Exchange = {
    sync({ market, timeoutSeconds }, settled) {
      written.get(market)?.push(timeline.nowMs());
      return clock.after(ROUND_TRIP_MS, () => {
        const startTime = Math.floor(clock.now().wallMs / 1000);
        const cancellationTime = startTime + (timeoutSeconds ?? 0);
        settled({ kind: 'applied', timer: { market, startTime, cancellationTime, types: null } });
      });
    },
    ping: (_base, _timeoutMs, settled) =>
      clock.after(ROUND_TRIP_MS, () => settled({ ok: true, latencyMs: 20 })),
  };
  const settings = {
    ...coreSettings({ markets: MARKETS.map((market) => `${market}:60`), nonce: 'window' }),
    budget: { requests, windowMs: 10_000 },
  };
  createKeeper({ settings, clock, exchange, observe: () => {} }).start();
  timeline.runUntil(forMs);
  return written;
}

test('a fleet that needs most of its budget is armed and renewed in turns, each as often as planned, within the budget', () => {
  const requests = 625;
  const written = [...runFleet(requests, 60_000).values()];
  // 500 markets, and 625 requests in 10 s at the most, of which a little is left free.
  const periodMs = 8600;
  expect(Math.max(...written.map(([first = Number.NaN]) => first))).toBeLessThan(periodMs);
  const gaps = written.flatMap((times) => times.slice(1).map((at, place) => at - (times[place] ?? 0)));
  expect(Math.max(...gaps)).toBeLessThan(periodMs * 1.05);
  // Once more when nothing of an earlier life can arrive any more; then at the cadence.
  const later = written.flatMap((times) =>
    times.slice(1).flatMap((at, place) => (at < 30_000 ? [] : [at - (times[place] ?? 0)])),
  );
  expect(Math.min(...later)).toBeGreaterThan(periodMs * 0.9);
  const all = written.flat().sort((one, other) => one - other);
  const tooMany = all.filter(
    (at, place) => at - (all[place - requests] ?? Number.NEGATIVE_INFINITY) <= 10_000,
  );
  expect(tooMany).toEqual([]);
});

test('one that cannot be armed within one window leaves the bursts behind: soon each renewal comes after about one cadence', () => {
  const CADENCE_MS = 14_300;
  const written = runFleet(375, 180_000);
  const gaps = [...written.values()].flatMap((times) =>
    times.slice(1).flatMap((at, place) => (at < 100_000 ? [] : [at - (times[place] ?? 0)])),
  );
  // In bursts that follow one another at the distance of the window a market waits for two of them.
  expect(Math.max(...gaps)).toBeLessThan(CADENCE_MS * 1.25);
  expect(Math.min(...gaps)).toBeGreaterThan(CADENCE_MS * 0.8);
});
