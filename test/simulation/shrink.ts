import type { Violation } from './court.ts';
import { FAULTS, type Fault, type Plan, type PlannedDaemon, type PlannedMarket } from './plan.ts';

/** Runs a plan and returns the violation that is looked for, or null where it does not come about. */
export type Finder = (plan: Plan) => Violation | null;

export interface Shrunk {
  readonly plan: Plan;
  readonly violation: Violation;
  /** How many plans were run to find it. */
  readonly runs: number;
}

/**
 * Looks for the simplest plan that still breaks the same promise: fewer faults first, then fewer markets, daemons and
 * bots, a shorter run, shorter and total faults, and a plainer world; round by round until nothing more comes off or
 * `mostRuns` plans were run. Null where the plan does not fail to begin with.
 */
export function shrinkPlan(given: Plan, find: Finder, mostRuns = 400): Shrunk | null {
  const first = find(given);
  if (first === null) return null;
  let [plan, violation, runs] = [given, first, 1];
  /** Tries a simpler plan: where it still fails, it is the plan from now on. */
  function attempt(candidate: Plan): void {
    if (runs >= mostRuns || JSON.stringify(candidate) === JSON.stringify(plan)) return;
    runs += 1;
    const found = find(candidate);
    if (found !== null) [plan, violation] = [candidate, found];
  }
  for (let before: Plan | null = null; before !== plan && runs < mostRuns; ) {
    before = plan;
    attempt(cutShort(plan, violation.atMs));
    // Half of the items, then quarters, and at last one after the other ("ddmin").
    for (const what of ['faults', 'markets', 'daemons'] as const)
      for (let size = Math.ceil(plan[what].length / 2); size >= 1; size = Math.floor(size / 2))
        for (let from = plan[what].length - size; from > -size; from -= size)
          attempt(without(plan, what, Math.max(0, from), from + size));
    for (const simpler of PLAINER) attempt(simpler(plan));
    for (const place of plan.faults.keys())
      for (const simpler of PLAINER_FAULTS)
        attempt({ ...plan, faults: replaced(plan.faults, place, simpler) });
  }
  return { plan, violation, runs };
}

function replaced(faults: readonly Fault[], place: number, simpler: (fault: Fault) => Fault): Fault[] {
  return faults.map((fault, index) => (index === place ? simpler(fault) : fault));
}

/** What happens after the violation cannot have brought it about. */
function cutShort(plan: Plan, brokenMs: number): Plan {
  const faults = plan.faults.filter(({ atMs }) => atMs <= brokenMs);
  const lastMs = Math.max(0, ...faults.map(({ atMs, forMs }) => atMs + forMs));
  const faultyMs = Math.min(plan.faultyMs, Math.ceil(Math.min(lastMs, brokenMs) / 1000) * 1000 + 1000);
  const endBy = (fault: Fault) => ({ ...fault, forMs: Math.min(fault.forMs, faultyMs - fault.atMs) });
  return { ...plan, faultyMs, faults: faults.map(endBy) };
}

/** What the targets of faults count, of all that can be left out. */
const TARGETS = { faults: /^$/, markets: /^(requests|market)$/, daemons: /^daemon$/ };

/** Drops the faults of what is gone as well, and lets the others strike what they struck before. */
function without(plan: Plan, what: keyof typeof TARGETS, from: number, to: number): Plan {
  if (what !== 'faults' && from === 0 && to >= plan[what].length) return plan;
  const faults = plan.faults.flatMap((fault) => {
    if (fault.target < from || !TARGETS[what].test(FAULTS[fault.kind])) return [fault];
    return fault.target < to ? [] : [{ ...fault, target: fault.target - (to - from) }];
  });
  const isLeft = (_: unknown, place: number) => place < from || place >= to;
  return { ...plan, faults, [what]: (what === 'faults' ? faults : plan[what]).filter(isLeft) };
}

type Simpler = (plan: Plan) => Plan;

const PLAIN_WORLD: Partial<Plan> = {
  onLapse: 'rearm',
  serverDriftPpm: 0,
  cancellationDelayMs: 0,
  rounding: 'floor',
  profile: 'documented',
  onStale: 'expire',
  evidence: 'beat',
  roundTripMs: 20,
  budgetRequests: 5000,
  limitRequests: 10_000,
};
const PLAIN_DAEMON: Partial<PlannedDaemon> = { driftPpm: 0, wallOffsetMs: 0, startMs: 0, policy: 'delete' };

function withoutCadence({ market, timeoutSeconds, types, bot }: PlannedMarket): PlannedMarket {
  return { market, timeoutSeconds, types, bot };
}

/** Steps towards the plainest world, each by itself. */
const PLAINER: readonly Simpler[] = [
  (plan) => ({
    ...plan,
    bots: 1,
    markets: plan.markets.map((market) => ({ ...market, bot: 0 })),
    faults: plan.faults.map((fault) => (FAULTS[fault.kind] === 'bot' ? { ...fault, target: 0 } : fault)),
  }),
  (plan) => ({ ...plan, bases: 1, faults: plan.faults.filter(({ kind }) => FAULTS[kind] !== 'base') }),
  (plan) => ({ ...plan, markets: plan.markets.map(withoutCadence) }),
  (plan) => ({ ...plan, markets: plan.markets.map((market) => ({ ...market, types: null })) }),
  (plan) => ({ ...plan, daemons: plan.daemons.map((daemon, key) => ({ ...daemon, key })) }),
  ...Object.entries(PLAIN_DAEMON).map(
    ([name, value]): Simpler =>
      (plan) => ({ ...plan, daemons: plan.daemons.map((daemon) => ({ ...daemon, [name]: value })) }),
  ),
  ...Object.entries(PLAIN_WORLD).map(
    ([name, value]): Simpler =>
      (plan) =>
        name in plan ? { ...plan, [name]: value } : plan,
  ),
];

const PLAINER_FAULTS: readonly ((fault: Fault) => Fault)[] = [
  (fault) => ({ ...fault, share: 1 }),
  (fault) => ({ ...fault, forMs: Math.round(fault.forMs / 2) }),
  // The size of this one is a timeout, which is not plainer for being shorter.
  (fault) => (fault.kind === 'reload-timeout' ? fault : { ...fault, sizeMs: Math.round(fault.sizeMs / 2) }),
  (fault) => ({ ...fault, atMs: Math.round(fault.atMs / 1000) * 1000 }),
];
