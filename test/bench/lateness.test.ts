import { describe, expect, it } from 'vitest';
import { histogramOf, latenessIn, observedBetween } from './histogram.ts';
import { beyondPeriod, lateInRecord } from './lateness.ts';

function page(counts: readonly number[]): string {
  const bounds = ['0.01', '0.025', '0.05', '+Inf'];
  const name = 'killswitch_schedule_delay_seconds';
  return [
    'killswitch_ready 1',
    `# HELP ${name} From when an attempt was due to when it was written.`,
    `# TYPE ${name} histogram`,
    ...bounds.map((bound, place) => `${name}_bucket{le="${bound}"} ${counts[place]}`),
    `${name}_sum 7.5`,
    `${name}_count ${counts.at(-1)}`,
    '# HELP killswitch_wake_delay_seconds Another.',
    'killswitch_wake_delay_seconds_bucket{le="0.01"} 5',
    '',
  ].join('\n');
}

const read = (counts: readonly number[]) => histogramOf(page(counts), 'killswitch_schedule_delay_seconds');

describe('lateness by the metrics of the daemon', () => {
  it('is of what was observed between two scrapes alone', () => {
    const before = read([0, 0, 500, 500]);
    const after = read([1000, 1000, 1500, 1500]);
    expect(latenessIn(observedBetween(before, after))?.max).toBe(10);
  });

  it('is spread evenly within a bucket, and its most is the upper bound of the highest that was filled', () => {
    const lateness = latenessIn(read([900, 980, 1000, 1000]));
    expect(lateness?.p50).toBeCloseTo(5.56, 2);
    expect(lateness?.p99).toBeCloseTo(37.5, 5);
    expect(lateness?.max).toBe(50);
  });

  it('is the last bound where something was later than that', () => {
    expect(latenessIn(read([980, 980, 980, 1000]))).toMatchObject({ p99: 50, max: 50 });
  });

  it('is none where too little was observed', () => {
    expect(latenessIn(read([9, 9, 9, 9]))).toBeNull();
  });

  it('is an error where the page has no such histogram', () => {
    expect(() => histogramOf('killswitch_ready 1\n', 'killswitch_schedule_delay_seconds')).toThrow(
      'the page of metrics has no killswitch_schedule_delay_seconds',
    );
  });
});

describe('lateness by the record of a peer', () => {
  it('is of what was sent within the window, against when it was planned', () => {
    const record = Float64Array.from(
      Array.from({ length: 300 }, (_, place) => [
        1000 + place,
        1000 + place + (place < 100 ? 500 : 3),
      ]).flat(),
    );
    const lateness = lateInRecord(record, 1103, 1290);
    expect(lateness).toEqual({ p50: 3, p99: 3, p999: 3, max: 3 });
  });

  it('is none where too little was sent', () => {
    expect(lateInRecord(Float64Array.from([1000, 1003]), 0, 2000)).toBeNull();
  });
});

describe('gaps by the exchange', () => {
  it('count only as far as they are longer than the period', () => {
    const gaps = Float64Array.from({ length: 200 }, (_, place) => (place === 7 ? 10_040 : 9990));
    expect(beyondPeriod(gaps, 10_000)).toEqual({ p50: 0, p99: 0, p999: 40, max: 40 });
  });
});
