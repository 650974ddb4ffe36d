import type { Flaw } from '../core/flaws.ts';
import type { Violation } from './court.ts';
import { createPool, type Pool } from './pool.ts';
import type { Shrunk } from './shrink.ts';
import { planOf } from './swarm.ts';

export interface SwarmOptions {
  readonly firstSeed: number;
  /** At most so many seeds, */
  readonly seeds: number;
  /** and none is begun after so much simulated time; milliseconds. */
  readonly simulatedMs?: number;
  readonly threads: number;
  readonly onProgress?: (progress: Progress) => void;
  /** A known bug to plant; only tests do. */
  readonly flaw?: Flaw | null;
}

export interface Progress {
  readonly seeds: number;
  readonly simulatedMs: number;
  readonly requests: number;
  /** How many seeds broke a promise so far. */
  readonly failing: number;
}

export interface Failing {
  readonly seed: number;
  readonly violation: Violation;
  /** Null where too many failed before it. */
  readonly shrunk: Shrunk | null;
}

export interface SwarmResult extends Omit<Progress, 'failing'> {
  /** Of the runs, without what shrinking took. */
  readonly cpuSeconds: number;
  /** By seed. */
  readonly failing: readonly Failing[];
}

/** A broken core breaks many seeds in the same way: these many are shrunk, and the rest is only named. */
const MOST_SHRUNK = 8;
const RUNS_PER_SHRINK = 400;

/** Runs the plans of many seeds on threads of their own, and shrinks those that break a promise. */
export async function runSwarm(options: SwarmOptions): Promise<SwarmResult> {
  const pool = createPool(options.threads);
  try {
    const { failing, ...totals } = await runSeeds(pool, options);
    const cpuSeconds = await pool.cpuSeconds();
    const shrunk = await Promise.all(failing.map((one, place) => shrink(pool, one, place, options)));
    return { ...totals, cpuSeconds, failing: shrunk };
  } finally {
    await pool.close();
  }
}

type Found = Omit<Failing, 'shrunk'>;

async function runSeeds(
  pool: Pool,
  options: SwarmOptions,
): Promise<Omit<Progress, 'failing'> & { readonly failing: readonly Found[] }> {
  const { firstSeed, simulatedMs = Number.POSITIVE_INFINITY, threads, onProgress, flaw = null } = options;
  const failing: Found[] = [];
  const totals = { seeds: 0, simulatedMs: 0, requests: 0 };
  let nextSeed = firstSeed;

  async function runOneAfterTheOther(): Promise<void> {
    while (nextSeed < firstSeed + options.seeds && totals.simulatedMs < simulatedMs) {
      const seed = nextSeed;
      nextSeed += 1;
      const report = await pool.do({ kind: 'run', seed, flaw });
      totals.seeds += 1;
      totals.simulatedMs += report.simulatedMs;
      totals.requests += report.requests;
      if (report.violation !== null) failing.push({ seed, violation: report.violation });
      onProgress?.({ ...totals, failing: failing.length });
    }
  }
  // Two chains for each thread: the next seed is there when one is done.
  await Promise.all(Array.from({ length: 2 * threads }, runOneAfterTheOther));
  return { ...totals, failing: failing.toSorted((one, other) => one.seed - other.seed) };
}

async function shrink(pool: Pool, found: Found, place: number, options: SwarmOptions): Promise<Failing> {
  if (place >= MOST_SHRUNK) return { ...found, shrunk: null };
  const plan = planOf(found.seed);
  const job = { kind: 'shrink', plan, mostRuns: RUNS_PER_SHRINK, flaw: options.flaw ?? null } as const;
  return { ...found, shrunk: (await pool.do(job)).shrunk };
}
