import type { Lateness } from './protocol.ts';
import { quantile } from './statistics.ts';

/** Fewer renewals than this have no tail. */
export const LEAST_SAMPLES = 100;

/** How much later than one period after the one before each renewal arrived. The subject says what its period is. */
export function beyondPeriod(gapsMs: Float64Array, periodMs: number): Lateness | null {
  if (periodMs <= 0) return null;
  return quantilesOf(gapsMs.map((gapMs) => Math.max(0, gapMs - periodMs)));
}

/**
 * How much later than planned a peer sent its renewals between two moments, by its own record: pairs of when each was
 * planned and when it was sent. Unix milliseconds.
 */
export function lateInRecord(record: Float64Array, fromMs: number, untilMs: number): Lateness | null {
  const late: number[] = [];
  for (let at = 0; at + 1 < record.length; at += 2) {
    const [plannedMs = 0, sentMs = 0] = record.subarray(at, at + 2);
    if (sentMs >= fromMs && sentMs <= untilMs) late.push(Math.max(0, sentMs - plannedMs));
  }
  return quantilesOf(Float64Array.from(late));
}

function quantilesOf(samples: Float64Array): Lateness | null {
  if (samples.length < LEAST_SAMPLES) return null;
  const sorted = samples.toSorted();
  const at = (q: number) => quantile(sorted, q);
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}
