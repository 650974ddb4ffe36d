import { describe, expect, it, vi } from 'vitest';
import { calm, daemon, fault, market } from './calm.ts';
import type { Violation } from './court.ts';
import type { FaultKind, Plan } from './plan.ts';
import { parsePlan } from './plan-reader.ts';
import { planOf } from './shapes.ts';
import { type Finder, shrinkPlan } from './shrink.ts';

const struck = (kind: FaultKind, target: number, sizeMs = 0) =>
  calm({ faults: [fault({ kind, target, sizeMs })] });

describe('a plan', () => {
  it('of any seed is read back as it was written', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const plan = planOf(seed);
      expect(parsePlan(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
    }
  });

  it.each([
    [[], 'plan must be object'],
    [{ ...calm(), bases: undefined }, "plan must have required property 'bases'"],
    [{ ...calm(), colour: 3 }, 'plan must NOT have additional properties: colour'],
    [{ ...calm(), nonce: 'rising' }, '/nonce must be equal to one of the allowed values: increasing, window'],
    [{ ...calm(), faultyMs: '60' }, 'plan/faultyMs must be number'],
    [calm({ markets: [market({ market: 'M0' })] }), 'plan/markets/0/market must match format "market"'],
    [calm({ markets: [market({ types: ['spot', 'spot'] })] }), 'plan/markets/0/types must'],
    [calm({ markets: [market(), market()] }), 'plan/markets/1 has the name of another market: M0_USDT'],
    [calm({ markets: [market({ bot: 1 })] }), 'plan/markets/0/bot must be < 1'],
    [
      calm({ serverDriftPpm: -100, daemons: [daemon({ driftPpm: 150 })] }),
      'plan/daemons/0/driftPpm must be within 200 of serverDriftPpm',
    ],
    [struck('lie', 1), 'plan/faults/0/target must be from -1 to 0 for lie'],
    [struck('stall', -1), 'plan/faults/0/target must be from 0 to 0 for stall'],
    [struck('neighbour', 0), 'plan/faults/0/target must be from -1 to -1 for neighbour'],
    [struck('delay', -1, 10_001), 'plan/faults/0/sizeMs must be from 0 to 10000 for delay'],
  ])('%j is refused: %s', (input, sentence) => {
    expect(parsePlan(input)).toContain(sentence);
  });
});

const broken = (atMs: number): Violation => ({ invariant: '1 belief', atMs, text: 'broken' });

const BUSY = calm({
  bots: 2,
  bases: 2,
  faultyMs: 180_000,
  roundTripMs: 200,
  markets: ['A', 'B', 'C', 'D', 'E'].map((name) =>
    market({ market: `${name}_USDT`, bot: 1, types: ['spot'] }),
  ),
  daemons: [daemon(), daemon({ key: 1, driftPpm: 100, startMs: 30_000 })],
  faults: [
    fault({ kind: 'delay', atMs: 1234.5, sizeMs: 900 }),
    fault({ kind: 'lie', atMs: 20_000, target: 1 }),
    fault({ kind: 'stall', atMs: 33_333.3, forMs: 16_000, target: 1 }),
    fault({ kind: 'lose-reply', atMs: 50_000, share: 0.3, forMs: 20_000, target: 3 }),
    fault({ kind: 'base-silent', atMs: 70_000, target: 1 }),
    fault({ kind: 'bot-silent', atMs: 90_000, target: 1 }),
    fault({ kind: 'crash', atMs: 150_000, target: 0 }),
  ],
});

describe('the shrinker', () => {
  it('keeps the one fault that matters and takes the rest of the world away', () => {
    const stalls = ({ faults }: Plan) => faults.some(({ kind, forMs }) => kind === 'stall' && forMs >= 3000);
    const shrunk = shrinkPlan(BUSY, (plan) => (stalls(plan) ? broken(60_000) : null));
    expect(shrunk?.plan).toEqual(
      calm({
        markets: [market({ market: 'A_USDT' })],
        daemons: [daemon()],
        faultyMs: shrunk?.plan.faultyMs ?? 0,
        faults: [fault({ kind: 'stall', atMs: 33_000, forMs: 4000, target: 0 })],
      }),
    );
    expect(shrunk?.plan.faultyMs).toBeLessThan(45_000);
  });

  it('keeps two faults that fail only together, and lets them strike what they struck before', () => {
    const find = ({ faults, markets }: Plan) => {
      const lost = faults.find(({ kind }) => kind === 'lose-reply');
      const lied = faults.find(({ kind }) => kind === 'lie');
      const both =
        markets[lost?.target ?? -1]?.market === 'D_USDT' && markets[lied?.target ?? -1]?.market === 'B_USDT';
      return both ? broken(80_000) : null;
    };
    const shrunk = shrinkPlan(BUSY, find);
    expect(shrunk?.plan.markets.map((one) => one.market)).toEqual(['B_USDT', 'D_USDT']);
    expect(shrunk?.plan.faults.map(({ kind, target, share }) => ({ kind, target, share }))).toEqual([
      { kind: 'lie', target: 0, share: 1 },
      { kind: 'lose-reply', target: 1, share: 1 },
    ]);
  });

  it('drops what happens after the promise was broken', () => {
    const shrunk = shrinkPlan(BUSY, ({ faults }) => (faults[0]?.kind === 'delay' ? broken(15_000) : null), 2);
    expect(shrunk?.plan.faults.map(({ kind }) => kind)).toEqual(['delay']);
    expect(shrunk?.runs).toBe(2);
  });

  it('runs no more plans than it may', () => {
    const find = vi.fn<Finder>(() => broken(170_000));
    expect(shrinkPlan(BUSY, find, 7)?.runs).toBe(7);
    expect(find).toHaveBeenCalledTimes(7);
  });

  it('has nothing to say about a plan that does not fail', () => {
    expect(shrinkPlan(BUSY, () => null)).toBeNull();
  });
});
