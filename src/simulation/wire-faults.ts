import { createRandom, hashText } from '../simulator/random.ts';
import { FAULTS, type Fault, type FaultKind, type Plan } from './plan.ts';

/** What faults can tell requests apart by. */
export interface Marked {
  readonly daemon: number;
  /** Index into the base addresses. */
  readonly base: number;
  /** Null for a ping. */
  readonly market: string | null;
  readonly number: number;
}

/** The faults of the wire: which of them hit a request, and every draw that a request needs. */
export interface WireFaults {
  /** A fault of the kind that holds now and hits this request, or null. */
  hits(kind: FaultKind, request: Marked): Fault | null;
  /** A number in [0, 1) that depends on the seed, the purpose and the request only. */
  draw(purpose: number, request: Marked): number;
}

export function createWireFaults(plan: Plan, nowMs: () => number): WireFaults {
  const byKind = new Map<FaultKind, Fault[]>();
  for (const fault of plan.faults) byKind.set(fault.kind, [...(byKind.get(fault.kind) ?? []), fault]);
  function strikes(fault: Fault, request: Marked): boolean {
    if (fault.target < 0) return true;
    if (FAULTS[fault.kind] === 'base') return request.base === fault.target;
    return request.market !== null && request.market === plan.markets[fault.target]?.market;
  }
  return {
    draw: (purpose, sent) =>
      createRandom(hashText(`${plan.seed} ${sent.daemon} ${sent.number} ${purpose}`))(),
    hits(kind, sent) {
      const faults = byKind.get(kind);
      if (faults === undefined) return null;
      const now = nowMs();
      for (const fault of faults) {
        if (now < fault.atMs || now >= fault.atMs + fault.forMs) continue;
        if (!strikes(fault, sent)) continue;
        const seed = `${plan.seed} ${kind} ${fault.atMs} ${sent.daemon} ${sent.number}`;
        if (fault.share < 1 && createRandom(hashText(seed))() >= fault.share) continue;
        return fault;
      }
      return null;
    },
  };
}
