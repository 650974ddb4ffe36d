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

const RENEWALS_PER_SECOND = 2000 / 6;

/** As a run takes them, every 40 s behind its first quarter. */
function samplesOf(bytesPerRenewal: number, minutes = 10): Sample[] {
  const moments = Array.from({ length: (minutes * 60) / 40 }, (_, place) => (place + 1) * 40);
  const warm = moments.filter((seconds) => seconds >= minutes * 15);
  return warm.map((seconds) => {
    const leakedMb = (seconds * RENEWALS_PER_SECOND * bytesPerRenewal) / 2 ** 20;
    return { minute: seconds / 60, heapMb: 46 + leakedMb, descriptors: 90, resources: 7 };
  });
}

const heapOf = (samples: readonly Sample[]) => judgeFlat(samples)[0];

describe('a heap that is sampled', () => {
  it('is flat where nothing is leaked', () => {
    expect(judgeFlat(samplesOf(0)).map(({ passed }) => passed)).toEqual([true, true, true]);
  });

  it('for 10 minutes is not flat with 25 bytes leaked per renewal', () => {
    expect(heapOf(samplesOf(10))?.passed).toBe(true);
    expect(heapOf(samplesOf(25))?.passed).toBe(false);
  });

  it('for 4 minutes, as .ci/run does, is not flat with a hundred bytes leaked per renewal', () => {
    expect(heapOf(samplesOf(0, 4))?.passed).toBe(true);
    expect(heapOf(samplesOf(100, 4))?.passed).toBe(false);
  });

  it('has no slope that means anything with two samples', () => {
    expect(heapOf(samplesOf(0).slice(0, 2))).toMatchObject({ passed: false, measured: 'only 2 samples' });
  });
});
