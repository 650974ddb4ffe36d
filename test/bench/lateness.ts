import type { Lateness } from './protocol.ts';
import { quantile } from './statistics.ts';

/** Fewer renewals than this have no tail. */
const LEAST_GAPS = 100;

/**
 * How much later than one period after the one before each renewal arrived. What a period is, the subject says; where
 * its renewals begin within it, nobody has to know.
 */
export function latenessOf(gapsMs: Float64Array, periodMs: number): Lateness | null {
  if (gapsMs.length < LEAST_GAPS || periodMs <= 0) return null;
  const late = gapsMs.map((gapMs) => Math.max(0, gapMs - periodMs)).sort();
  const at = (q: number) => quantile(late, q);
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
}
