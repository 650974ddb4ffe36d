import { expect, test } from 'vitest';
import { createStage } from './keeper-stage.ts';

test('how late the loop wakes up is told, and an answer in between is no waking', () => {
  const { keeper, clock, calls, run, apply } = createStage();
  const late: number[] = [];
  keeper.onWake((lateMs) => late.push(lateMs));
  keeper.start();
  apply(calls[0]);
  expect(late).toEqual([]);
  run(1000);
  expect(late.length).toBeGreaterThanOrEqual(2);
  expect(Math.max(...late)).toBe(0);
  clock.stall(900);
  run(1500);
  expect(Math.max(...late)).toBeGreaterThan(140);
});
