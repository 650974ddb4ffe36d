import type { OrderType } from '../core/outcome.ts';
import { createRandom } from '../simulator/random.ts';

/** What can go wrong, with what each needs to know. All of it is data: a failing run is a list of these. */
export const FAULT_KINDS = [
  'lose-request',
  'lose-reply',
  'delay',
  'duplicate',
  'black-hole',
  'refuse-connections',
  'reset-before',
  'reset-after',
  'slow-body',
  'cut-off',
  'error-in-200',
  'bad-request',
  'unauthorised',
  'throttled-page',
  'throttled-json',
  'server-error',
  'gateway-page',
  'unacknowledged',
  'lie',
  'forget-timers',
  'server-clock-step',
  'wall-step',
  'stall',
  'suspend',
  'crash',
  'terminate',
  'limiter-stuck',
  'bot-silent',
  'bot-goodbye',
  'actor-deletes',
  'actor-changes',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** One fault. Moments and lengths in true milliseconds since the start of the run. */
export interface Fault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly forMs: number;
  /** Share of the requests that it hits, 0 to 1. */
  readonly share: number;
  /** Size where it has one: a delay, a step of a clock; milliseconds. */
  readonly sizeMs: number;
  /** Index of the daemon, bot or market that it concerns; -1 for all of them. */
  readonly target: number;
}

export interface PlannedMarket {
  readonly market: string;
  readonly timeoutSeconds: number;
  readonly types: readonly OrderType[] | null;
  readonly bot: number;
}

export interface PlannedDaemon {
  readonly startMs: number;
  readonly driftPpm: number;
  readonly wallOffsetMs: number;
  readonly policy: 'delete' | 'keep' | 'handoff';
}

/** A whole run as data: equal plans give byte-identical runs. */
export interface Plan {
  readonly seed: number;
  /** Faults happen until here; after it everything must come right again. */
  readonly faultyMs: number;
  readonly markets: readonly PlannedMarket[];
  readonly daemons: readonly PlannedDaemon[];
  readonly bots: number;
  readonly nonce: 'increasing' | 'window';
  readonly watched: boolean;
  readonly onStale: 'expire' | 'trip';
  readonly roundTripMs: number;
  readonly profile: 'documented' | 'live';
  readonly rounding: 'floor' | 'round' | 'ceil';
  readonly cancellationDelayMs: number;
  readonly serverDriftPpm: number;
  /** Requests per 10 s that a daemon may write. */
  readonly budgetRequests: number;
  readonly faults: readonly Fault[];
}

/** Longest time that a request travels in a simulated network: what `requestLifetimeSeconds` promises. */
export const REQUEST_LIFETIME_MS = 10_000;
const TIMEOUTS = [5, 5, 10, 15, 30, 60, 60, 120, 600] as const;
const TYPES: readonly (readonly OrderType[] | null)[] = [
  null,
  null,
  ['spot'],
  ['spot', 'margin'],
  ['futures'],
];

type Draw = ReturnType<typeof createDraw>;

function createDraw(seed: number) {
  const random = createRandom(seed);
  return {
    share: random,
    between: (low: number, high: number) => low + random() * (high - low),
    whole: (low: number, high: number) => low + Math.floor(random() * (high - low + 1)),
    chance: (probability: number) => random() < probability,
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item,
  };
}

/** Makes the plan of a seed: a world, and a random subset of the faults with random strength ("swarm"). */
export function planOf(seed: number, options: { readonly faultyMs?: number } = {}): Plan {
  const draw = createDraw(seed);
  const faultyMs = options.faultyMs ?? 180_000;
  const bots = draw.chance(0.3) ? 2 : 1;
  const daemons = draw.chance(0.15) ? draw.whole(2, 3) : 1;
  const nonce = draw.chance(0.5) ? 'window' : 'increasing';
  const markets = Array.from(
    { length: draw.chance(0.5) ? draw.whole(1, 4) : draw.whole(5, 20) },
    (_, index) => ({
      market: `M${index}_USDT`,
      timeoutSeconds: draw.chance(0.1) ? draw.whole(5, 600) : draw.pick(TIMEOUTS),
      types: draw.pick(TYPES),
      bot: draw.whole(0, bots - 1),
    }),
  );
  const world = {
    seed,
    faultyMs,
    bots,
    markets,
    nonce,
    daemons: Array.from(
      { length: daemons },
      (_, index): PlannedDaemon => ({
        startMs: index === 0 ? 0 : draw.between(0, faultyMs / 2),
        // Together with the exchange's own drift at most 200 ppm.
        driftPpm: draw.between(-150, 150),
        // In a nonce window a wrong clock is for the estimate of the exchange's clock to find out.
        wallOffsetMs: draw.chance(0.3) ? draw.between(-3_600_000, 3_600_000) : draw.between(-500, 500),
        policy: draw.pick(['delete', 'delete', 'keep', 'handoff'] as const),
      }),
    ),
    watched: draw.chance(0.8),
    onStale: draw.chance(0.3) ? ('trip' as const) : ('expire' as const),
    roundTripMs: draw.pick([2, 10, 20, 50, 100, 200]),
    profile: draw.pick(['documented', 'live'] as const),
    rounding: draw.pick(['floor', 'floor', 'round', 'ceil'] as const),
    cancellationDelayMs: draw.pick([0, 0, 500, 2000]),
    serverDriftPpm: draw.between(-50, 50),
    budgetRequests: draw.chance(0.1) ? tightBudget(markets) : 5000,
  } satisfies Omit<Plan, 'faults'>;
  return { ...world, faults: drawFaults(draw, world) };
}

/** Half as much again as three renewals per timeout need. */
function tightBudget(markets: readonly PlannedMarket[]): number {
  const perSecond = markets.reduce((sum, { timeoutSeconds }) => sum + 3 / timeoutSeconds, 0);
  return Math.max(10, Math.ceil(perSecond * 1.5 * 10));
}

function drawFaults(draw: Draw, world: Omit<Plan, 'faults'>): Fault[] {
  const enabled = FAULT_KINDS.filter(() => draw.chance(draw.chance(0.5) ? 0.1 : 0.35));
  const faults: Fault[] = [];
  for (const kind of enabled) {
    const times = draw.whole(1, ONE_SHOT.has(kind) ? 2 : 4);
    for (let count = 0; count < times; count += 1) faults.push(drawFault(draw, kind, world));
  }
  return faults.toSorted((one, other) => one.atMs - other.atMs);
}

const ONE_SHOT: ReadonlySet<FaultKind> = new Set([
  'crash',
  'terminate',
  'suspend',
  'bot-goodbye',
  'server-clock-step',
]);
const ON_DAEMON: ReadonlySet<FaultKind> = new Set([
  'wall-step',
  'stall',
  'suspend',
  'crash',
  'terminate',
  'limiter-stuck',
]);

function drawFault(draw: Draw, kind: FaultKind, world: Omit<Plan, 'faults'>): Fault {
  const atMs = draw.between(0, world.faultyMs * 0.9);
  const longMs = draw.chance(0.2) ? draw.between(5_000, world.faultyMs) : draw.between(100, 20_000);
  const forMs = Math.min(longMs, world.faultyMs - atMs);
  const share = draw.chance(0.4) ? 1 : draw.between(0.05, 1);
  const all = draw.chance(0.6);
  const target = ON_DAEMON.has(kind)
    ? draw.whole(0, world.daemons.length - 1)
    : kind.startsWith('bot-')
      ? draw.whole(0, world.bots - 1)
      : kind.startsWith('actor-') || !all
        ? draw.whole(0, world.markets.length - 1)
        : -1;
  return {
    kind,
    atMs,
    forMs: LENGTH[kind]?.(draw, forMs) ?? forMs,
    share,
    sizeMs: SIZE[kind]?.(draw) ?? 0,
    target,
  };
}

/** Lengths that are not those of an outage. */
const LENGTH: Partial<Record<FaultKind, (draw: Draw, forMs: number) => number>> = {
  stall: (draw) => (draw.chance(0.6) ? draw.between(100, 3_000) : draw.between(3_000, 60_000)),
  suspend: (draw) => draw.between(1_000, 60_000),
  crash: (draw) => draw.between(500, 20_000),
};

const SIZE: Partial<Record<FaultKind, (draw: Draw) => number>> = {
  // A long tail, below the lifetime of a request.
  delay: (draw) => 50 / (1 - draw.between(0, 0.993)),
  'slow-body': (draw) => draw.between(100, 5_000),
  duplicate: (draw) => draw.between(1, 3_000),
  'wall-step': (draw) => draw.between(-300_000, 300_000),
  'server-clock-step': (draw) => draw.between(-3_000, 3_000),
};
