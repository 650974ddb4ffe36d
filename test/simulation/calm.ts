import type { Fault, Plan, PlannedDaemon, PlannedMarket } from './plan.ts';

export function market(patch: Partial<PlannedMarket> = {}): PlannedMarket {
  return { market: 'M0_USDT', timeoutSeconds: 60, types: null, bot: 0, ...patch };
}

export function daemon(patch: Partial<PlannedDaemon> = {}): PlannedDaemon {
  return { startMs: 0, driftPpm: 0, wallOffsetMs: 0, policy: 'delete', key: 0, ...patch };
}

export function fault(patch: Partial<Fault> & Pick<Fault, 'kind'>): Fault {
  return { atMs: 10_000, forMs: 5000, share: 1, sizeMs: 0, target: -1, ...patch };
}

/** One market of 60 s, one daemon, one bot, nothing out of the ordinary. */
export function calm(patch: Partial<Plan> = {}): Plan {
  return {
    seed: 1,
    faultyMs: 60_000,
    bots: 1,
    markets: [market()],
    daemons: [daemon()],
    bases: 1,
    nonce: 'increasing',
    watched: true,
    onStale: 'expire',
    roundTripMs: 20,
    profile: 'documented',
    rounding: 'floor',
    cancellationDelayMs: 0,
    serverDriftPpm: 0,
    budgetRequests: 5000,
    limitRequests: 10_000,
    faults: [],
    ...patch,
  };
}
