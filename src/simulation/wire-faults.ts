import { hashText } from '../simulator/random.ts';
import { FAULTS, type Fault, type FaultKind, type Plan } from './plan.ts';
import type { Sent } from './sent.ts';

/** The faults of the wire: which of them hit a request, and every draw that a request needs. */
export interface WireFaults {
  /** A fault of the kind that holds now and hits this request, or null. */
  readonly hits: (kind: FaultKind, sent: Sent) => Fault | null;
  /** A number in [0, 1) that depends on the seed, the purpose and the request only. */
  readonly draw: (purpose: number, sent: Sent) => number;
}

interface Salted {
  readonly fault: Fault;
  readonly salt: number;
  /** Null for the requests of all markets. */
  readonly market: string | null;
}

export function createWireFaults(plan: Plan, nowMs: () => number): WireFaults {
  const salts = new Map(
    ['', ...plan.markets.map(({ market }) => market)].map((name) => [name, hashText(name)]),
  );
  const streamOf = ({ daemon, life, market }: Sent) =>
    Math.imul(daemon * 64 + life, 0x9e3779b1) ^ (salts.get(market ?? '') ?? 0);
  const byKind = new Map<FaultKind, Salted[]>();
  for (const fault of plan.faults) {
    const { kind, target, atMs } = fault;
    if (FAULTS[kind] !== 'requests' && FAULTS[kind] !== 'base') continue;
    const salted = {
      fault,
      salt: hashText(`${plan.seed} ${kind} ${atMs}`),
      market: FAULTS[kind] === 'requests' && target >= 0 ? (plan.markets[target]?.market ?? '') : null,
    };
    byKind.set(kind, [...(byKind.get(kind) ?? []), salted]);
  }

  return {
    draw: (purpose, sent) => mixed(plan.seed + purpose, streamOf(sent), sent.nth),
    hits(kind, sent) {
      const faults = byKind.get(kind);
      if (faults === undefined) return null;
      const now = nowMs();
      for (const { fault, salt, market } of faults) {
        if (now < fault.atMs || now >= fault.atMs + fault.forMs) continue;
        if (market !== null && sent.market !== market) continue;
        if (FAULTS[kind] === 'base' && sent.base !== fault.target) continue;
        if (fault.share < 1 && mixed(salt, streamOf(sent), sent.nth) >= fault.share) continue;
        return fault;
      }
      return null;
    },
  };
}

/** A number in [0, 1) made of three whole ones (the finisher of MurmurHash3). */
function mixed(one: number, two: number, three: number): number {
  let hash = Math.imul(one, 0x85ebca6b) ^ Math.imul(two, 0xc2b2ae35) ^ Math.imul(three + 1, 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
