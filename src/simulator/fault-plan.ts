import { hashText } from '../util/hash.ts';
import type { RequestTarget } from './answering.ts';
import { applyFault } from './fault-effects.ts';
import { type ActiveFault, type Fault, isMatch, type Treatment, UNTOUCHED } from './faults.ts';
import { createRandom } from './random.ts';

/** The faults in force and what they do to each request. Times in Unix milliseconds of the exchange's clock. */
export interface FaultPlan {
  add(fault: Fault, nowMs: number): ActiveFault;
  /** Ends every fault and returns how many there were. */
  clear(): number;
  active(nowMs: number): readonly ActiveFault[];
  /** Decides what becomes of one request. Without a fault in force it need not be called. */
  treat(target: RequestTarget, nowMs: number): Treatment;
}

interface Planned extends ActiveFault {
  hits: number;
  skipped: number;
  readonly random: () => number;
}

/**
 * A plan whose decisions depend on nothing but the seed, the faults and the requests. Each fault draws from a stream
 * of its own, made from its content, so that adding or removing another fault changes nothing about its decisions.
 */
export function createFaultPlan(seed: number): FaultPlan {
  let planned: readonly Planned[] = [];
  const copies = new Map<string, number>();
  let lastId = 0;

  function prune(nowMs: number): void {
    if (planned.some((fault) => isOver(fault, nowMs))) {
      planned = planned.filter((fault) => !isOver(fault, nowMs));
    }
  }

  return {
    add(fault, nowMs) {
      const content = JSON.stringify(fault);
      const copy = copies.get(content) ?? 0;
      copies.set(content, copy + 1);
      lastId += 1;
      const random = createRandom(hashText(`${seed} ${copy} ${content}`));
      const endsAtMs = fault.forMs === undefined ? null : nowMs + fault.forMs;
      const added: Planned = { id: lastId, fault, hits: 0, skipped: 0, endsAtMs, random };
      planned = [...planned, added];
      return added;
    },
    clear() {
      const ended = planned.length;
      planned = [];
      return ended;
    },
    active(nowMs) {
      prune(nowMs);
      return planned.map(({ id, fault, hits, endsAtMs }) => ({ id, fault, hits, endsAtMs }));
    },
    treat(target, nowMs) {
      prune(nowMs);
      let treatment = UNTOUCHED;
      for (const candidate of planned) {
        if (!isMatch(candidate.fault, target)) continue;
        if (candidate.skipped < (candidate.fault.skip ?? 0)) {
          candidate.skipped += 1;
          continue;
        }
        const chance = candidate.random();
        const jitter = candidate.random();
        if (chance >= (candidate.fault.probability ?? 1)) continue;
        const next = applyFault(treatment, candidate, jitter, nowMs);
        if (next === null) continue;
        candidate.hits += 1;
        treatment = next;
      }
      return treatment;
    },
  };
}

function isOver(planned: Planned, nowMs: number): boolean {
  const { fault, hits, endsAtMs } = planned;
  return (endsAtMs !== null && nowMs >= endsAtMs) || (fault.count !== undefined && hits >= fault.count);
}
