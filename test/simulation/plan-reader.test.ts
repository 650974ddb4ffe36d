import { describe, expect, it } from 'vitest';
import { calm, daemon, fault, market } from './calm.ts';
import { type FaultKind, printPlan } from './plan.ts';
import { parsePlan } from './plan-reader.ts';
import { planOf } from './shapes.ts';

const problemOf = (input: unknown) => {
  const parsed = parsePlan(input);
  return parsed.ok ? null : parsed.problem;
};

const stall = fault({ kind: 'stall' });
const struck = (kind: FaultKind, target: number, sizeMs = 0) =>
  calm({ faults: [fault({ kind, target, sizeMs })] });

describe('a plan', () => {
  it('of any seed is read back as it was written', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const plan = planOf(seed);
      expect(parsePlan(JSON.parse(printPlan(plan)))).toEqual({ ok: true, plan });
    }
  });

  it('may say what it found', () => {
    expect(problemOf({ found: 'a bug', ...calm() })).toBeNull();
  });

  it.each([
    [[], 'plan is []; expected an object with found, seed, faultyMs'],
    [{ ...calm(), bases: undefined }, 'plan.bases is missing; expected a whole number'],
    [{ ...calm(), roundtripMs: 3 }, 'plan has the unknown field "roundtripMs"; did you mean roundTripMs?'],
    [{ ...calm(), colour: 3 }, 'plan has the unknown field "colour"; allowed: found, seed'],
    [{ ...calm(), nonce: 'rising' }, 'plan.nonce is "rising"; expected increasing, window'],
    [{ ...calm(), faultyMs: '60' }, 'plan.faultyMs is "60"; expected a number from 1 to 86400000'],
    [
      calm({ markets: [market({ timeoutSeconds: 4 })] }),
      'markets[0].timeoutSeconds is 4; expected a whole number from 5 to 600',
    ],
    [
      calm({ markets: [market({ types: ['spot', 'spot'] })] }),
      'markets[0].types is ["spot","spot"]; expected null or a list of spot, margin, futures',
    ],
    [calm({ markets: [market(), market()] }), 'markets[1].market is "M0_USDT" for the second time'],
    [calm({ markets: [market({ bot: 1 })] }), 'markets[0].bot is 1; expected one of 1 bots, from 0'],
    [
      { ...calm(), daemons: [{ ...daemon(), policy: 'stay' }] },
      'daemons[0].policy is "stay"; expected delete, keep, handoff',
    ],
    [
      calm({ serverDriftPpm: -100, daemons: [daemon({ driftPpm: 150 })] }),
      'daemons[0].driftPpm is 150; expected at most 200 from serverDriftPpm',
    ],
    [{ ...calm(), faults: [{ ...stall, kind: 'stal' }] }, 'faults[0].kind is "stal"; did you mean stall?'],
    [struck('lie', 1), 'faults[0].target is 1; expected a whole number from -1 to 0 for lie'],
    [struck('stall', -1), 'faults[0].target is -1; expected a whole number from 0 to 0 for stall'],
    [struck('neighbour', 0), 'faults[0].target is 0; expected -1 for neighbour'],
    [struck('delay', -1, 10_001), 'faults[0].sizeMs is 10001; expected a number from 0 to 10000'],
  ])('%j is refused: %s', (input, sentence) => {
    expect(problemOf(input)?.slice(0, sentence.length)).toBe(sentence);
  });
});
