import { LEAST_SAMPLES } from './lateness.ts';
import type { Lateness } from './protocol.ts';

/** A histogram as a page of metrics has it, in its own unit: how much lay at or below each bound. */
export interface Histogram {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

/** Reads a histogram without labels off a page of metrics. Throws where there is none of that name. */
export function histogramOf(page: string, name: string): Histogram {
  // A page of 10,000 markets has a million lines: only those of the histogram are looked at.
  const from = page.indexOf(`\n${name}_bucket{`);
  const sumAt = page.indexOf(`\n${name}_sum `, from);
  if (from < 0 || sumAt < 0) throw new Error(`the page of metrics has no ${name}`);
  const lines = page.slice(from + 1, sumAt).split('\n');
  const read = lines.map((line) => {
    const [, le = '', count = ''] = /\{le="([^"]+)"\} (\S+)/.exec(line) ?? [];
    return { bound: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), count: Number(count) };
  });
  return {
    bounds: read.map(({ bound }) => bound),
    counts: read.map(({ count }) => count),
  };
}

/** What was observed from one reading to the next. */
export function observedBetween(before: Histogram, after: Histogram): Histogram {
  return {
    bounds: after.bounds,
    counts: after.counts.map((count, place) => count - (before.counts[place] ?? 0)),
  };
}

/**
 * Quantiles of a histogram of seconds, in milliseconds: evenly spread within a bucket, as Prometheus has it. The most is
 * the upper bound of the highest bucket with something in it; what lies beyond the last bound counts as that. Null where
 * too few were observed.
 */
export function latenessIn(histogram: Histogram): Lateness | null {
  const { bounds, counts } = histogram;
  const total = counts.at(-1) ?? 0;
  if (total < LEAST_SAMPLES) return null;
  const upper = (place: number) => {
    const bound = bounds[place] ?? Number.POSITIVE_INFINITY;
    // Of what lies beyond the last bound nothing else is known.
    return Number.isFinite(bound) ? bound : (bounds[place - 1] ?? 0);
  };
  const at = (q: number) => {
    const rank = q * total;
    const place = counts.findIndex((count) => count >= rank);
    const below = counts[place - 1] ?? 0;
    const from = bounds[place - 1] ?? 0;
    const within = (counts[place] ?? 0) - below;
    return (from + (upper(place) - from) * ((rank - below) / within)) * 1000;
  };
  const highest = counts.findIndex((count) => count >= total);
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: upper(highest) * 1000 };
}
