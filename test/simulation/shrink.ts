import type { Violation } from './court.ts';
import {
  FAULTS,
  type Fault,
  type Plan,
  type PlannedDaemon,
  type PlannedMarket,
  type Struck,
} from './plan.ts';

/** Runs a plan and returns the violation that is looked for, or null where it does not come about. */
export type Finder = (plan: Plan) => Violation | null;

export interface Shrunk {
  readonly plan: Plan;
  readonly violation: Violation;
  /** How many plans were run to find it. */
  readonly runs: number;
}

/** Tries a simpler plan; true where it still fails, and then it is the plan from now on. */
type Attempt = (candidate: Plan) => boolean;

/**
 * Looks for the simplest plan that still breaks the same promise: fewer faults first, then fewer markets, daemons and
 * bots, a shorter run, shorter and total faults, and a plainer world; round by round until nothing more comes off or
 * `mostRuns` plans were run. Null where the plan does not fail to begin with.
 */
export function shrinkPlan(plan: Plan, find: Finder, mostRuns = 400): Shrunk | null {
  const first = find(plan);
  if (first === null) return null;
  let best: Shrunk = { plan, violation: first, runs: 1 };
  let runs = 1;
  const attempt: Attempt = (candidate) => {
    if (runs >= mostRuns) return false;
    runs += 1;
    const violation = find(candidate);
    if (violation === null) return false;
    best = { plan: candidate, violation, runs };
    return true;
  };
  for (let before: Plan | null = null; before !== best.plan && runs < mostRuns; ) {
    before = best.plan;
    cutShort(best, attempt);
    const current = () => best.plan;
    for (const what of ['faults', 'markets', 'daemons'] as const) dropSome(current, attempt, what);
    for (const simpler of PLAINER) tryPatch(current, attempt, simpler);
    for (let index = 0; index < best.plan.faults.length; index += 1)
      for (const simpler of PLAINER_FAULTS)
        tryPatch(current, attempt, (plan) => ({
          ...plan,
          faults: plan.faults.map((fault, place) => (place === index ? simpler(fault) : fault)),
        }));
  }
  return { ...best, runs };
}

/** What happens after the violation cannot have brought it about. */
function cutShort({ plan, violation }: Shrunk, attempt: Attempt): void {
  const faults = plan.faults.filter(({ atMs }) => atMs <= violation.atMs);
  const lastMs = faults.reduce((most, { atMs, forMs }) => Math.max(most, atMs + forMs), 0);
  for (const endMs of [lastMs, violation.atMs]) {
    const faultyMs = Math.ceil(endMs / 1000) * 1000 + 1000;
    const candidate = {
      ...plan,
      faultyMs: Math.min(plan.faultyMs, faultyMs),
      faults: faults.map((fault) => endBy(fault, faultyMs)),
    };
    if ((candidate.faultyMs < plan.faultyMs || faults.length < plan.faults.length) && attempt(candidate))
      return;
  }
}

function endBy(fault: Fault, endMs: number): Fault {
  return { ...fault, forMs: Math.min(fault.forMs, Math.max(0, endMs - fault.atMs)) };
}

/** Leaves out half of the items, then quarters, and at last one after the other ("ddmin"). */
function dropSome(current: () => Plan, attempt: Attempt, what: Items): void {
  const countOf = (plan: Plan) => plan[what].length;
  const least = what === 'faults' ? 0 : 1;
  for (let size = Math.ceil(countOf(current()) / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = countOf(current()) - size; from > -size; from -= size) {
      let candidate = current();
      const first = Math.max(0, from);
      for (let index = from + size - 1; index >= first; index -= 1) {
        if (index < countOf(candidate)) candidate = without(candidate, what, index);
      }
      const left = countOf(candidate);
      if (left >= least && left < countOf(current())) attempt(candidate);
    }
  }
}

type Items = keyof typeof TARGETS;

/** What the targets of faults count, of all that can be left out. */
const TARGETS: Readonly<Record<'faults' | 'markets' | 'daemons', readonly Struck[]>> = {
  faults: [],
  markets: ['requests', 'market'],
  daemons: ['daemon'],
};

/** Drops the faults of what is gone as well, and lets the others strike what they struck before. */
function without(plan: Plan, what: Items, gone: number): Plan {
  const isStruck = ({ kind }: Fault) => TARGETS[what].includes(FAULTS[kind]);
  const faults = plan.faults
    .filter((fault) => fault.target !== gone || !isStruck(fault))
    .map((fault) =>
      fault.target > gone && isStruck(fault) ? { ...fault, target: fault.target - 1 } : fault,
    );
  return {
    ...plan,
    faults,
    [what]: (what === 'faults' ? faults : plan[what]).filter((_, place) => place !== gone),
  };
}

/** The plan with this value where it has one. */
const plainly =
  <Name extends keyof Plan>(name: Name, value: Plan[Name]) =>
  (plan: Plan): Plan =>
    plan[name] === undefined ? plan : { ...plan, [name]: value };

const everyDaemon =
  (patch: Partial<PlannedDaemon>) =>
  (plan: Plan): Plan => ({ ...plan, daemons: plan.daemons.map((daemon) => ({ ...daemon, ...patch })) });

function withoutCadence({ market, timeoutSeconds, types, bot }: PlannedMarket): PlannedMarket {
  return { market, timeoutSeconds, types, bot };
}

/** Steps towards the plainest world, each by itself. */
const PLAINER: readonly ((plan: Plan) => Plan)[] = [
  (plan) => ({
    ...plan,
    bots: 1,
    markets: plan.markets.map((market) => ({ ...market, bot: 0 })),
    faults: plan.faults.map((fault) => (FAULTS[fault.kind] === 'bot' ? { ...fault, target: 0 } : fault)),
  }),
  (plan) => ({ ...plan, bases: 1, faults: plan.faults.filter(({ kind }) => FAULTS[kind] !== 'base') }),
  plainly('onLapse', 'rearm'),
  (plan) => ({ ...plan, markets: plan.markets.map(withoutCadence) }),
  ...[{ driftPpm: 0 }, { wallOffsetMs: 0 }, { startMs: 0 }, { policy: 'delete' } as const].map(everyDaemon),
  (plan) => ({ ...plan, daemons: plan.daemons.map((daemon, key) => ({ ...daemon, key })) }),
  (plan) => ({ ...plan, markets: plan.markets.map((market) => ({ ...market, types: null })) }),
  plainly('serverDriftPpm', 0),
  plainly('cancellationDelayMs', 0),
  plainly('rounding', 'floor'),
  plainly('profile', 'documented'),
  plainly('onStale', 'expire'),
  plainly('evidence', 'beat'),
  plainly('roundTripMs', 20),
  plainly('budgetRequests', 5000),
  plainly('limitRequests', 10_000),
];

const PLAINER_FAULTS: readonly ((fault: Fault) => Fault)[] = [
  (fault) => ({ ...fault, share: 1 }),
  (fault) => ({ ...fault, forMs: Math.round(fault.forMs / 2) }),
  // The size of this one is a timeout, which is not plainer for being shorter.
  (fault) => (fault.kind === 'reload-timeout' ? fault : { ...fault, sizeMs: Math.round(fault.sizeMs / 2) }),
  (fault) => ({ ...fault, atMs: Math.round(fault.atMs / 1000) * 1000 }),
];

function tryPatch(current: () => Plan, attempt: Attempt, simpler: (plan: Plan) => Plan): void {
  const candidate = simpler(current());
  if (JSON.stringify(candidate) !== JSON.stringify(current())) attempt(candidate);
}
