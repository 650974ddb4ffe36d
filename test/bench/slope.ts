import { median } from './book.ts';

/** What the daemon holds at one moment, after a forced collection. */
export interface Sample {
  readonly minute: number;
  readonly heapMb: number;
  readonly descriptors: number;
  /** Sockets, timers, watchers: what keeps the process alive. */
  readonly resources: number;
}

export interface Judged {
  readonly what: string;
  readonly passed: boolean;
  readonly measured: string;
}

/** Fewer have no slope that means anything. */
export const LEAST_SAMPLES = 3;
/**
 * What may be gained from the first sample to the last: 3 MB of 46. 2,000 markets are renewed 53,000 times between those
 * of a run of 4 minutes, and 147,000 times in one of 10: a leak of a hundred bytes per renewal is 5 MB, or 14.
 */
const HEAP_SHARE = 0.04;
const HEAP_MB = 1;
/** Connections to the exchange come and go with its faults. */
const FEW = 16;
/** A connection counts while a request is on its way over it, and 64 may be. */
const UNDER_WAY = 80;

/** Growth per minute: the median of the slopes between all pairs, so that one odd sample decides nothing. */
function slopeOf(points: readonly { readonly minute: number; readonly value: number }[]): number {
  const slopes = points.flatMap((from, place) =>
    points.slice(place + 1).map((to) => (to.value - from.value) / (to.minute - from.minute)),
  );
  return slopes.length === 0 ? 0 : median(slopes);
}

/** Whether what is held does not grow. */
export function judgeFlat(samples: readonly Sample[]): Judged[] {
  const judge = (
    what: string,
    unit: string,
    held: Exclude<keyof Sample, 'minute'>,
    may: (level: number) => number,
  ) => {
    const points = samples.map((sample) => ({ minute: sample.minute, value: sample[held] }));
    const perMinute = slopeOf(points);
    const level = median(points.map(({ value }) => value));
    const lasted = (points.at(-1)?.minute ?? 0) - (points[0]?.minute ?? 0);
    const slope = `slope ${perMinute.toFixed(3)}${unit} a minute over ${lasted.toFixed(1)} min`;
    if (samples.length < LEAST_SAMPLES)
      return { what, passed: false, measured: `only ${samples.length} samples` };
    return {
      what,
      passed: perMinute * lasted <= may(level),
      measured: `${level.toFixed(1)}${unit}, ${slope}`,
    };
  };
  return [
    judge('the heap is flat', ' MB', 'heapMb', (level) => HEAP_MB + level * HEAP_SHARE),
    judge('descriptors are flat', '', 'descriptors', () => FEW),
    judge('handles are flat', '', 'resources', () => UNDER_WAY),
  ];
}
