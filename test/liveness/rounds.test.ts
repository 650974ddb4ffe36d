import { expect, test } from 'vitest';
import { startRounds } from '../../src/liveness/rounds.ts';
import { createVirtual } from './virtual.ts';

test('looks at the bots at the pace of a reload within a second: the wait of before would outlast the new evidence', () => {
  const { clock, timeline } = createVirtual();
  const roundsMs: number[] = [];
  let everyMs = 200_000;
  const round = () => void roundsMs.push(timeline.nowMs());
  const end = startRounds(clock, () => everyMs, round);
  timeline.runUntil(2500);
  everyMs = 2000;
  timeline.runUntil(8000);
  everyMs = 4000;
  timeline.runUntil(15_500);
  end();
  timeline.runUntil(60_000);
  expect(roundsMs).toEqual([0, 3000, 5000, 7000, 11_000, 15_000]);
});
