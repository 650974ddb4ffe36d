import { hashText } from '../util/hash.ts';
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
  readonly untilMs: number;
  readonly salt: number;
  /** Null for the requests of all markets. */
  readonly market: string | null;
  /** Null for all base addresses. */
  readonly base: number | null;
}

export function createWireFaults(plan: Plan, nowMs: () => number): WireFaults {
  const salts = new Map(
    ['', ...plan.markets.map(({ market }) => market)].map((name) => [name, hashText(name)]),
  );
  const streamOf = ({ daemon, life, market }: Sent) =>
    Math.imul(daemon * 64 + life, 0x9e3779b1) ^ (salts.get(market ?? '') ?? 0);
  const activeAt = createCalendar(saltFaults(plan));

  return {
    draw: (purpose, sent) => mixed(plan.seed + purpose, streamOf(sent), sent.nth),
    hits(kind, sent) {
      for (const { fault, salt, market, base } of activeAt(nowMs()).get(kind) ?? NONE) {
        if (market !== null && sent.market !== market) continue;
        if (base !== null && sent.base !== base) continue;
        if (fault.share < 1 && mixed(salt, streamOf(sent), sent.nth) >= fault.share) continue;
        return fault;
      }
      return null;
    },
  };
}

const NONE: readonly Salted[] = [];

function saltFaults({ seed, faults, markets }: Plan): Salted[] {
  return faults
    .filter(({ kind }) => FAULTS[kind] === 'requests' || FAULTS[kind] === 'base')
    .map((fault) => {
      const { kind, target, atMs, forMs } = fault;
      const all = target < 0;
      return {
        fault,
        untilMs: atMs + forMs,
        salt: hashText(`${seed} ${kind} ${atMs}`),
        market: all || FAULTS[kind] === 'base' ? null : (markets[target]?.market ?? ''),
        base: all || FAULTS[kind] === 'requests' ? null : target,
      };
    });
}

type Active = ReadonlyMap<FaultKind, readonly Salted[]>;

/** Which faults hold at a moment. Asked many times for every request, and the answer seldom changes. */
function createCalendar(faults: readonly Salted[]): (atMs: number) => Active {
  const turnsMs = faults.flatMap(({ fault, untilMs }) => [fault.atMs, untilMs]);
  let active: Active = new Map();
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;

  return (atMs) => {
    if (atMs >= fromMs && atMs < toMs) return active;
    fromMs = Math.max(0, ...turnsMs.filter((turnMs) => turnMs <= atMs));
    toMs = Math.min(...turnsMs.filter((turnMs) => turnMs > atMs));
    active = Map.groupBy(
      faults.filter(({ fault, untilMs }) => fault.atMs <= atMs && atMs < untilMs),
      ({ fault }) => fault.kind,
    );
    return active;
  };
}

/** A number in [0, 1) made of three whole ones (the finisher of MurmurHash3). */
function mixed(one: number, two: number, three: number): number {
  let hash = Math.imul(one, 0x85ebca6b) ^ Math.imul(two, 0xc2b2ae35) ^ Math.imul(three + 1, 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
