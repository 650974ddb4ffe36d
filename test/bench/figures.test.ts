import { describe, expect, it } from 'vitest';
import { latenessBetween } from './lateness.ts';
import { judgeFlat, type Sample } from './slope.ts';

const NAME = 'killswitch_schedule_delay_seconds';
function page(...counts: number[]) {
  const bounds = ['0.01', '0.025', '0.05', '+Inf'];
  const lines = bounds.map((bound, place) => `${NAME}_bucket{le="${bound}"} ${counts[place]}\n`);
  return `killswitch_ready 1\n${lines.join('')}other_bucket{le="0.01"} 5\n`;
}

describe('lateness by the metrics of the daemon', () => {
  it('is of what was observed between two scrapes alone', () => {
    expect(latenessBetween(page(0, 0, 500, 500), page(1000, 1000, 1500, 1500), NAME)).toEqual({
      p99: 9.9,
      max: 10,
    });
  });

  it('is spread evenly within a bucket, and its most is the upper bound of the highest that was filled', () => {
    const { p99, max } = latenessBetween(page(0, 0, 0, 0), page(900, 980, 1000, 1000), NAME);
    expect(p99).toBeCloseTo(37.5, 5);
    expect(max).toBe(50);
  });
});

/** As a run takes them, every 40 s behind its first quarter, with 2,000 markets that are renewed every 6 s. */
function samplesOf(bytesPerRenewal: number, minutes: number): Sample[] {
  const moments = Array.from({ length: (minutes * 60) / 40 }, (_, place) => (place + 1) * 40);
  const warm = moments.filter((seconds) => seconds >= minutes * 15);
  return warm.map((seconds) => {
    const leakedMb = (seconds * (2000 / 6) * bytesPerRenewal) / 2 ** 20;
    return { minute: seconds / 60, heapMb: 46 + leakedMb, descriptors: 90, resources: 7 };
  });
}

it.each([
  [10, 0, true],
  [10, 10, true],
  [10, 25, false],
  // As .ci/run does.
  [4, 0, true],
  [4, 100, false],
])(
  'a heap that is sampled for %i minutes and leaks %i bytes per renewal is flat: %s',
  (minutes, bytes, flat) => {
    const judged = judgeFlat(samplesOf(bytes, minutes)).map(({ passed }) => passed);
    expect(judged).toEqual([flat, true, true]);
  },
);

it('a heap has no slope that means anything with two samples', () => {
  const [heap] = judgeFlat(samplesOf(0, 10).slice(0, 2));
  expect(heap).toMatchObject({ passed: false, measured: 'only 2 samples' });
});
