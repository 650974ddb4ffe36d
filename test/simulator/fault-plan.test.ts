import { expect, test } from 'vitest';
import type { Fault } from '../../src/simulator/faults.ts';
import { createFaultPlan } from '../../src/simulator/faults.ts';

const target = { operation: 'kill-switch', market: 'BTC_USDT', key: 'one' };

function hits(seed: number, faults: readonly Fault[], watched: number): boolean[] {
  const plan = createFaultPlan(seed);
  const ids = faults.map((fault) => plan.add(fault, 0).id);
  return Array.from({ length: 200 }, (_, index) =>
    plan.treat(target, index).hits.some((hit) => hit.faultId === ids[watched]),
  );
}

const half: Fault = { kind: 'latency', ms: 10, probability: 0.5 };

test('a plan repeats from its seed, and another seed gives another one', () => {
  expect(hits(1, [half], 0)).toEqual(hits(1, [half], 0));
  expect(hits(1, [half], 0)).not.toEqual(hits(2, [half], 0));
  const share = hits(1, [half], 0).filter(Boolean).length;
  expect(share).toBeGreaterThan(60);
  expect(share).toBeLessThan(140);
});

test('removing one fault of a plan changes nothing about the others', () => {
  const other: Fault = { kind: 'slow-body', ms: 5, probability: 0.3 };
  expect(hits(7, [other, half], 1)).toEqual(hits(7, [half], 0));
});

test('two equal faults of a plan do not always strike together', () => {
  expect(hits(7, [half, half], 0)).not.toEqual(hits(7, [half, half], 1));
});

test('a fault is spent after its count', () => {
  const plan = createFaultPlan(1);
  plan.add({ kind: 'throttle', count: 2 }, 0);
  const applied = [0, 1, 2].map((nowMs) => plan.treat(target, nowMs).apply);
  expect(applied).toEqual(['no', 'no', 'yes']);
  expect(plan.active(3)).toEqual([]);
});

test('a fault ends after its time', () => {
  const plan = createFaultPlan(1);
  plan.add({ kind: 'throttle', forMs: 100 }, 1000);
  expect([1000, 1099, 1100].map((nowMs) => plan.treat(target, nowMs).apply)).toEqual(['no', 'no', 'yes']);
});

test('delays add up and the earlier of two verdicts counts', () => {
  const plan = createFaultPlan(1);
  for (const fault of [
    { kind: 'latency', ms: 10 },
    { kind: 'latency', ms: 20, when: 'after' },
    { kind: 'latency', ms: 5 },
    { kind: 'reset', when: 'after' },
    { kind: 'throttle', count: 1 },
  ] satisfies Fault[]) {
    plan.add(fault, 0);
  }
  expect(plan.treat(target, 0)).toMatchObject({
    waitMs: 15,
    replyWaitMs: 20,
    apply: 'yes',
    fate: { kind: 'reset' },
  });
  expect(plan.active(0)).toHaveLength(5);
});

test('a request is held no longer than the fault lasts', () => {
  const plan = createFaultPlan(1);
  plan.add({ kind: 'hang', mode: 'hold', forMs: 100, match: { market: 'BTC_USDT' } }, 0);
  expect(plan.treat(target, 30).hang).toMatchObject({ ms: 70, endsWithFault: true });
  plan.add({ kind: 'hang', mode: 'drop', ms: 10, match: { market: 'ETH_USDT' } }, 0);
  expect(plan.treat({ operation: 'kill-switch', market: 'ETH_USDT', key: 'one' }, 30).hang).toMatchObject({
    ms: 10,
    endsWithFault: false,
    mode: 'drop',
  });
  expect(plan.treat({ operation: 'ping', market: null, key: null }, 30).hang).toBeNull();
});

test('jitter stays within its bound', () => {
  const plan = createFaultPlan(3);
  plan.add({ kind: 'latency', ms: 100, jitterMs: 50 }, 0);
  const waits = Array.from({ length: 100 }, () => plan.treat(target, 0).waitMs);
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(100);
  expect(Math.max(...waits)).toBeLessThan(150);
  expect(new Set(waits).size).toBeGreaterThan(90);
});

test('a fault lets so many requests through first, and hits one key', () => {
  const plan = createFaultPlan(1);
  plan.add({ kind: 'throttle', skip: 2, count: 1, match: { key: 'one' } }, 0);
  const applied = [target, { ...target, key: 'two' }, target, target, target].map(
    (asked) => plan.treat(asked, 0).apply,
  );
  expect(applied).toEqual(['yes', 'yes', 'yes', 'no', 'yes']);
});
