import { describe, expect, it } from 'vitest';
import { calm, daemon, fault, market } from './calm.ts';
import { printPlan } from './plan.ts';
import { parsePlan } from './plan-reader.ts';
import { planOf } from './swarm.ts';

const problemOf = (input: unknown) => {
  const parsed = parsePlan(input);
  return parsed.ok ? null : parsed.problem;
};

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
    ['no object', [], 'plan is []; expected an object with found, seed, wider, faultyMs'],
    [
      'a field that is missing',
      { ...calm(), bases: undefined },
      'plan.bases is missing; expected a whole number',
    ],
    [
      'an unknown field',
      { ...calm(), roundtripMs: 3 },
      'plan has the unknown field "roundtripMs"; did you mean roundTripMs?',
    ],
    [
      'a far-fetched field',
      { ...calm(), colour: 3 },
      'plan has the unknown field "colour"; allowed: found, seed',
    ],
    ['a wrong word', { ...calm(), nonce: 'rising' }, 'plan.nonce is "rising"; expected increasing, window'],
    [
      'a wrong number',
      { ...calm(), faultyMs: '60' },
      'plan.faultyMs is "60"; expected a number from 1 to 86400000',
    ],
    [
      'a market without timeout',
      { ...calm(), markets: [{ ...market(), timeoutSeconds: 4 }] },
      'markets[0].timeoutSeconds is 4; expected a whole number from 5 to 600',
    ],
    [
      'an order type twice',
      { ...calm(), markets: [market({ types: ['spot', 'spot'] })] },
      'markets[0].types is ["spot","spot"]; expected null or a list of spot, margin, futures',
    ],
    [
      'a market twice',
      calm({ markets: [market(), market()] }),
      'markets[1].market is "M0_USDT" for the second time',
    ],
    [
      'a bot that is not there',
      calm({ markets: [market({ bot: 1 })] }),
      'markets[0].bot is 1; expected one of 1 bots, from 0',
    ],
    [
      'a policy that is not known',
      { ...calm(), daemons: [{ ...daemon(), policy: 'stay' }] },
      'daemons[0].policy is "stay"; expected delete, keep, handoff',
    ],
    [
      'clocks that drift apart too fast',
      calm({ serverDriftPpm: -100, daemons: [daemon({ driftPpm: 150 })] }),
      'daemons[0].driftPpm is 150; expected at most 200 from serverDriftPpm',
    ],
    [
      'a fault with a slip of the pen',
      { ...calm(), faults: [{ ...fault({ kind: 'stall' }), kind: 'stal' }] },
      'faults[0].kind is "stal"; did you mean stall?',
    ],
    [
      'a fault at a market that is not there',
      calm({ faults: [fault({ kind: 'lie', target: 1 })] }),
      'faults[0].target is 1; expected a whole number from -1 to 0 for lie',
    ],
    [
      'a stall of all daemons at once',
      calm({ faults: [fault({ kind: 'stall' })] }),
      'faults[0].target is -1; expected a whole number from 0 to 0 for stall',
    ],
    [
      'a neighbour of one market',
      calm({ faults: [fault({ kind: 'neighbour', target: 0 })] }),
      'faults[0].target is 0; expected -1 for neighbour',
    ],
    [
      'a delay beyond the lifetime of a request',
      calm({ faults: [fault({ kind: 'delay', sizeMs: 10_001 })] }),
      'faults[0].sizeMs is 10001; expected a number from 0 to 10000',
    ],
  ])('with %s is refused with one clear sentence', (_what, input, sentence) => {
    expect(problemOf(input)?.slice(0, sentence.length)).toBe(sentence);
  });
});
