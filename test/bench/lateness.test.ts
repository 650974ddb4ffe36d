import { describe, expect, it } from 'vitest';
import { latenessBetween } from './lateness.ts';

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
