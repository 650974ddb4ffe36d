import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTimerTable, type KillSwitchTimer } from '../../src/simulator/timer-table.ts';

const MARKETS = ['A_X', 'B_X', 'C_X', 'D_X'];

type Step =
  | { kind: 'set'; market: string; inMs: number }
  | { kind: 'remove'; market: string }
  | { kind: 'pass'; ms: number };

const market = fc.constantFrom(...MARKETS);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('set' as const), market, inMs: fc.integer({ min: 1, max: 50 }) }),
  fc.record({ kind: fc.constant('remove' as const), market }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 30 }) }),
);

test('timers fire at their latest moment and never after a delete, whatever the order of renewals', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = createTimerTable();
      const model = new Map<string, number>();
      let nowMs = 0;
      for (const current of steps) {
        let due: [string, number][] = [];
        let taken: readonly KillSwitchTimer[] = [];
        if (current.kind === 'set') {
          const dueMs = nowMs + current.inMs;
          table.set(timerOf(current.market, dueMs));
          model.set(current.market, dueMs);
        } else if (current.kind === 'remove') {
          table.remove('main', current.market);
          model.delete(current.market);
        } else {
          nowMs += current.ms;
          due = [...model].filter(([, dueMs]) => dueMs <= nowMs);
          for (const [name] of due) model.delete(name);
          taken = table.takeDue(nowMs);
        }
        const moments = taken.map((timer) => timer.dueMs);
        expect(taken.map((timer) => timer.market).toSorted()).toEqual(due.map(([name]) => name).toSorted());
        expect(moments).toEqual(moments.toSorted((a, b) => a - b));
        expect(table.nextDueMs()).toBe(model.size === 0 ? null : Math.min(...model.values()));
        expect(table.all()).toHaveLength(model.size);
      }
    }),
  );
});

test('timers that are due together fire in the order in which they were first armed', () => {
  const table = createTimerTable();
  for (const name of ['C_X', 'A_X', 'B_X']) table.set(timerOf(name, 10));
  table.set(timerOf('C_X', 20));
  table.set(timerOf('A_X', 20));
  table.set(timerOf('B_X', 20));
  expect(table.takeDue(20).map((timer) => timer.market)).toEqual(['C_X', 'A_X', 'B_X']);
});

test('equal market names of two accounts are two timers', () => {
  const table = createTimerTable();
  table.set(timerOf('A_X', 10));
  table.set({ ...timerOf('A_X', 30), account: 'other' });
  table.remove('main', 'A_X');
  expect(table.get('main', 'A_X')).toBeUndefined();
  expect(table.nextDueMs()).toBe(30);
});

function timerOf(name: string, dueMs: number): KillSwitchTimer {
  return { account: 'main', market: name, startTime: 0, cancellationTime: 0, types: null, dueMs };
}
