import { beforeAll, describe, expect, it } from 'vitest';
import {
  COMPARED_RULES,
  COMPARED_TIMEOUTS_SECONDS,
  type Comparison,
  compareAt,
  longerThan,
  OUTAGE_KINDS,
  type OutageKind,
} from './compare.ts';

const OPTIONS = { samples: 12, phases: 2, lives: 4, seed: 1, roundTripMs: 100 };
const comparisons = new Map<number, Comparison>();

function rowOf(timeoutSeconds: number, name: string) {
  const found = comparisons.get(timeoutSeconds)?.rows.find(({ rule }) => rule.name === name);
  if (found === undefined) throw new Error(`no row for ${name} at T = ${timeoutSeconds} s`);
  return found;
}
const worst = (timeoutSeconds: number, name: string, kind: OutageKind): number =>
  rowOf(timeoutSeconds, name).survival[kind].worst;

beforeAll(() => {
  for (const seconds of COMPARED_TIMEOUTS_SECONDS) comparisons.set(seconds, compareAt(seconds, OPTIONS));
}, 120_000);

describe('at the worst moment our own rule survives an outage', () => {
  it.each([
    [600, 0.95],
    [60, 0.88],
    [15, 0.85],
    [5, 0.55],
  ])('of a timer of %d s for at least %d of it', (timeoutSeconds, share) => {
    for (const kind of OUTAGE_KINDS)
      expect(worst(timeoutSeconds, 'killswitchd', kind), kind).toBeGreaterThanOrEqual(share);
  });

  it('but never longer than rounding to seconds and its own period allow', () => {
    for (const timeoutSeconds of COMPARED_TIMEOUTS_SECONDS) {
      const { requestsPerSecond, survival } = rowOf(timeoutSeconds, 'killswitchd');
      const most = (timeoutSeconds - 0.999 - 1 / requestsPerSecond) / timeoutSeconds;
      for (const kind of OUTAGE_KINDS) expect(survival[kind].worst).toBeLessThanOrEqual(most + 0.001);
    }
  });
});

it.each(COMPARED_TIMEOUTS_SECONDS)(
  'no other rule is ahead at the same or a lower rate, T = %d s',
  (timeoutSeconds) => {
    const ahead = comparisons.get(timeoutSeconds)?.ahead.filter(({ atSameRate }) => atSameRate);
    expect(ahead).toEqual([]);
  },
);

describe('what is known about the other rules comes out', () => {
  it.each([
    // It does not wait out a black hole.
    ['Eureka heartbeat', 60, [0.28, 0.38], [0, 0.02]],
    ["the exchange's sample", 60, [0, 0.2], [0, 0.2]],
    // It gives up in its grace.
    ['Vault LifetimeWatcher', 60, [0, 0.1], [0, 0.1]],
    // Overlapping attempts cost the period only.
    ['etcd clientv3', 600, [0.65, 0.667], [0.65, 0.667]],
    // An HTTP timeout as long as the timer.
    ['Eureka heartbeat', 5, [0, 1], [0, 0.02]],
    ['Consul session', 5, [0, 1], [0, 0.02]],
    ['BitMEX, Kraken advice', 5, [0, 1], [0, 0.02]],
  ] as const)('%s, T = %d s', (name, timeoutSeconds, refused, blackHole) => {
    const ranges = { refused, 'black hole': blackHole };
    for (const kind of OUTAGE_KINDS) {
      expect(worst(timeoutSeconds, name, kind)).toBeGreaterThanOrEqual(ranges[kind][0]);
      expect(worst(timeoutSeconds, name, kind)).toBeLessThan(ranges[kind][1]);
    }
  });

  it('every rule renews as often as it says', () => {
    const perTimeout = (name: string) => Math.round(rowOf(600, name).requestsPerSecond * 6000) / 10;
    expect(Object.fromEntries(COMPARED_RULES.map(({ name }) => [name, perTimeout(name)]))).toEqual({
      killswitchd: 60,
      'etcd clientv3': 3,
      'client-go election': 7.5,
      'kubelet node lease': 3.9,
      'BitMEX, Kraken advice': 4,
      'Consul session': 2,
      'Eureka heartbeat': 3,
      'Vault LifetimeWatcher': 1.4,
      "the exchange's sample": 1.3,
    });
  });
});

it('half of the outages are longer than their median, and one in six longer than one sigma', () => {
  expect(longerThan(0.5)).toBeCloseTo(0.5, 6);
  expect(longerThan(0.5 * Math.E)).toBeCloseTo(0.158655, 6);
  expect(longerThan(0.5 / Math.E)).toBeCloseTo(0.841345, 6);
  expect(longerThan(0)).toBe(1);
});

it('equal seeds give equal figures', () => {
  const once = compareAt(15, { ...OPTIONS, samples: 4, lives: 1 });
  expect(compareAt(15, { ...OPTIONS, samples: 4, lives: 1 })).toEqual(once);
});
