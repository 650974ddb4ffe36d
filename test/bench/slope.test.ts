import { describe, expect, it } from 'vitest';
import { judgeFlat, type Sample } from './slope.ts';

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
