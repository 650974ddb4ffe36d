import { describe, expect, it } from 'vitest';
import { calm, daemon, fault, market } from './calm.ts';
import type { FaultKind } from './plan.ts';
import { parsePlan } from './plan-reader.ts';
import { planOf } from './shapes.ts';

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
