import type { Flaw } from '../core/flaws.ts';
import type { Violation } from './court.ts';
import type { Plan } from './plan.ts';
import { type Shrunk, shrinkPlan } from './shrink.ts';
import { planOf } from './swarm.ts';
import { runPlan } from './world.ts';

/** Work for a thread of its own: everything in it and in its result can be sent as a message. */
export type Job = RunJob | ShrinkJob;

export interface RunJob {
  readonly kind: 'run';
  readonly seed: number;
  /** A known bug to plant; only tests do. */
  readonly flaw?: Flaw | null;
}

/** Looks for the simplest plan that breaks the same promise as the seed does first. */
export interface ShrinkJob {
  readonly kind: 'shrink';
  readonly plan: Plan;
  readonly mostRuns: number;
  readonly flaw?: Flaw | null;
}

export interface RunReport {
  readonly kind: 'run';
  readonly seed: number;
  readonly simulatedMs: number;
  readonly requests: number;
  /** The first promise that was broken; null where all held. */
  readonly violation: Violation | null;
}

export interface ShrinkReport {
  readonly kind: 'shrink';
  readonly shrunk: Shrunk | null;
}

export type Report<J extends Job> = J extends RunJob ? RunReport : ShrinkReport;

export function carryOut<J extends Job>(job: J): Report<J>;
export function carryOut(job: Job): RunReport | ShrinkReport {
  const options = { flaw: job.flaw ?? null };
  if (job.kind === 'run') {
    const { seed } = job;
    const { violations, simulatedMs, requests } = runPlan(planOf(seed), options);
    return { kind: 'run', seed, simulatedMs, requests, violation: violations[0] ?? null };
  }
  const wanted = runPlan(job.plan, options).violations[0]?.invariant;
  const find = (plan: Plan) =>
    runPlan(plan, options).violations.find(({ invariant }) => invariant === wanted) ?? null;
  return { kind: 'shrink', shrunk: shrinkPlan(job.plan, find, job.mostRuns) };
}
