import { createRandom } from '../../src/simulator/random.ts';
import { periodMs, survivesMs, timedOf } from './conditions.ts';
import {
  EVIDENCE_MODES,
  FAULT_KINDS,
  FAULTS,
  type Fault,
  type FaultKind,
  type Plan,
  type PlannedDaemon,
  type PlannedMarket,
} from './plan.ts';

const FAULTY_MS = 180_000;
/** The documented limit of the exchange, and half of it. */
const LIMIT_REQUESTS = 10_000;
const BUDGET_REQUESTS = 5000;
const ROUND_TRIPS_MS = [2, 10, 20, 50, 100, 200] as const;
const TIMEOUTS = [5, 5, 10, 15, 30, 60, 60, 120, 600] as const;
const TYPES: PlannedMarket['types'][] = [null, null, ['spot'], ['spot', 'margin'], ['futures']];

export type Draw = ReturnType<typeof createDraw>;
type World = Omit<Plan, 'faults'>;

export function createDraw(seed: number) {
  const random = createRandom(seed);
  return {
    // A tenth of a millisecond is fine enough, and reads well in a plan; JSON knows no -0.
    between: (low: number, high: number) => Math.round((low + random() * (high - low)) * 10) / 10 + 0,
    whole: (low: number, high: number) => low + Math.floor(random() * (high - low + 1)),
    chance: (probability: number) => random() < probability,
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item,
  };
}

/** A world, and a random subset of the faults with random strength ("swarm"). */
export function mixtureOf(seed: number): Plan {
  const draw = createDraw(seed);
  const bots = draw.chance(0.3) ? 2 : 1;
  const daemons = draw.chance(0.15) ? draw.whole(2, 3) : 1;
  const nonce = draw.chance(0.5) ? 'window' : 'increasing';
  const markets = drawMarkets(draw, bots);
  const world = {
    seed,
    faultyMs: FAULTY_MS,
    bots,
    markets,
    daemons: Array.from({ length: daemons }, (_, index) => drawDaemon(draw, index)),
    bases: draw.chance(markets.length < 3 ? 0.4 : 0.2) ? 2 : 1,
    nonce,
    watched: draw.chance(0.8),
    evidence: draw.pick(['beat', 'beat', ...EVIDENCE_MODES]),
    onStale: draw.chance(0.3) ? ('trip' as const) : ('expire' as const),
    roundTripMs: draw.pick(
      ROUND_TRIPS_MS.filter((ms) => nonce === 'window' || ms <= longestRoundTripMs(markets)),
    ),
    profile: draw.pick(['documented', 'live'] as const),
    rounding: draw.pick(['floor', 'floor', 'round', 'ceil'] as const),
    cancellationDelayMs: draw.pick([0, 0, 500, 2000]),
    serverDriftPpm: draw.between(-50, 50),
    budgetRequests: draw.chance(0.1) ? tightBudget(markets) : BUDGET_REQUESTS,
    limitRequests: LIMIT_REQUESTS,
  } satisfies World;
  const faults = drawFaults(draw, world);
  const crowded = faults.some(({ kind }) => kind === 'neighbour');
  return { ...world, faults, limitRequests: crowded ? crowdedLimit(world) : LIMIT_REQUESTS };
}

/** A limit that neighbours can use up without making the simulation crawl: twice what the daemons need. */
function crowdedLimit({ markets, daemons }: Pick<World, 'markets' | 'daemons'>): number {
  // A tenth of the timeout is the cadence, from 1 s to 10 s.
  const cadences = markets.map(({ timeoutSeconds }) => Math.min(Math.max(timeoutSeconds / 10, 1), 10));
  const perSecond = cadences.reduce((sum, cadence) => sum + 1 / cadence, 0);
  return Math.ceil(perSecond * 10 * 2 * daemons.length) + 40;
}

/** How many markets a plan has: two or three show most faults, and twenty cost ten times as much. */
export function drawCount(draw: Draw, least: number): number {
  if (draw.chance(0.7)) return draw.whole(least, least + 2);
  return draw.chance(0.8) ? draw.whole(least + 3, least + 6) : draw.whole(8, 20);
}

function drawMarkets(draw: Draw, bots: number): PlannedMarket[] {
  return Array.from({ length: drawCount(draw, 1) }, (_, index) => ({
    market: `M${index}_USDT`,
    timeoutSeconds: draw.chance(0.1) ? draw.whole(5, 600) : draw.pick(TIMEOUTS),
    types: draw.pick(TYPES),
    bot: draw.whole(0, bots - 1),
  }));
}

function drawDaemon(draw: Draw, index: number): PlannedDaemon {
  return {
    startMs: index === 0 || draw.chance(0.2) ? 0 : draw.between(0, FAULTY_MS / 2),
    // Together with the exchange's own drift at most 200 ppm.
    driftPpm: draw.between(-150, 150),
    // In a nonce window a wrong clock is for the estimate of the exchange's clock to find out.
    wallOffsetMs: draw.chance(0.3) ? draw.between(-3_600_000, 3_600_000) : draw.between(-500, 500),
    policy: draw.pick(['delete', 'delete', 'keep', 'handoff'] as const),
    // The same key, or one of its own.
    key: draw.chance(0.3) ? 0 : index,
  };
}

/**
 * With rising nonces requests go one after the other: a round trip that is too long for three renewals of every timer
 * is a configuration that does not work, and the daemon says so. A part stays free for retries.
 */
export function longestRoundTripMs(markets: readonly PlannedMarket[]): number {
  return 700 / renewalsPerSecond(markets);
}

/** Three for every timeout. */
export function renewalsPerSecond(markets: readonly PlannedMarket[]): number {
  return markets.reduce((sum, { timeoutSeconds }) => sum + 3 / timeoutSeconds, 0);
}

/** Half as much again as three renewals per timeout need. */
export function tightBudget(markets: readonly PlannedMarket[]): number {
  return Math.max(10, Math.ceil(renewalsPerSecond(markets) * 1.5 * 10));
}

/** The plan with these faults, in the order of their moments. */
export function withFaults(plan: Plan, faults: readonly Fault[]): Plan {
  return { ...plan, faults: faults.toSorted((one, other) => one.atMs - other.atMs) };
}

/** Outages of everything: what the promise of no false lapse is about. */
const OUTAGES = ['black-hole', 'refuse-connections', 'server-error', 'lose-reply', 'reset-before'] as const;
/** The time between two outages is long enough for everything to be as if there had been none. */
const RECOVERED_MS = 20_000;

/** The longest outage that lapses none of the markets, where nothing else is wrong. */
function leastSurvivedMs(world: World): number {
  const survived = world.markets.map((market) =>
    survivesMs(world, market.timeoutSeconds * 1000, periodMs(timedOf(market))),
  );
  return Math.min(...survived);
}

/** One outage after the other, most of them nearly as long as the shortest timer must survive. */
export function drawOutages(draw: Draw, world: World, kinds: readonly FaultKind[] = OUTAGES): Fault[] {
  const kind = draw.pick(kinds);
  const longestMs = Math.max(1000, leastSurvivedMs(world) - 1);
  const faults: Fault[] = [];
  for (let atMs = draw.between(5_000, 25_000); atMs < world.faultyMs * 0.8; ) {
    const share = draw.chance(0.6) ? draw.between(0.9, 1) : draw.between(0.3, 0.9);
    const forMs = Math.round(longestMs * share);
    faults.push({ kind, atMs, forMs, share: 1, sizeMs: 0, target: -1 });
    atMs = Math.round(atMs + forMs + RECOVERED_MS + draw.between(0, 5_000));
  }
  return faults.filter(({ atMs, forMs }) => atMs + forMs <= world.faultyMs);
}

/** Drawn by shapes only. */
export const RARE_KINDS: readonly FaultKind[] = [
  'restart',
  'new-key',
  'new-budget',
  'refusal-page',
  'grants-less',
  'base-slow',
  'base-errors',
];

function drawFaults(draw: Draw, world: World): Fault[] {
  if (draw.chance(0.15)) return drawOutages(draw, world);
  const enabled = FAULT_KINDS.filter((kind) => !RARE_KINDS.includes(kind)).filter(() =>
    draw.chance(draw.chance(0.5) ? 0.1 : 0.35),
  );
  const faults: Fault[] = [];
  for (const kind of enabled) {
    const times = draw.whole(1, ONE_SHOT.has(kind) ? 2 : 4);
    for (let count = 0; count < times; count += 1) faults.push(drawFault(draw, kind, world));
  }
  const gathered = faults.map((fault) => gather(draw, fault, faults));
  // A request that a stall holds up leaves later than it was counted: with a budget of a few requests that is one too many.
  const scarce = world.budgetRequests < BUDGET_REQUESTS;
  return gathered
    .filter(({ kind }) => kind !== 'stutters' || !scarce)
    .toSorted((one, other) => one.atMs - other.atMs);
}

/**
 * What happens once, or is done to a daemon or a market, half of the time happens in the middle of something else: a
 * SIGTERM while the bot is silent is another matter than one of the two, and is looked for most.
 */
function gather(draw: Draw, fault: Fault, all: readonly Fault[]): Fault {
  const struck = FAULTS[fault.kind];
  if (!(ONE_SHOT.has(fault.kind) || struck === 'daemon' || struck === 'market') || !draw.chance(0.5))
    return fault;
  const ofBots = all.filter(({ kind }) => FAULTS[kind] === 'bot');
  const stops = fault.kind === 'terminate' && ofBots.length > 0 && draw.chance(0.5);
  const other = draw.pick(stops ? ofBots : all);
  const atMs = Math.round(other.atMs + other.forMs * draw.between(0.3, 1));
  return atMs + fault.forMs > FAULTY_MS ? fault : { ...fault, atMs };
}

const ONE_SHOT: ReadonlySet<FaultKind> = new Set([
  'crash',
  'terminate',
  'suspend',
  'bot-goodbye',
  'server-clock-step',
  'restart',
  'new-key',
  'new-budget',
]);

export function drawFault(draw: Draw, kind: FaultKind, world: World): Fault {
  const target = drawTarget(draw, kind, world);
  const atMs = draw.between(0, world.faultyMs * 0.9);
  const longMs = draw.chance(0.2) ? draw.between(5_000, world.faultyMs) : draw.between(100, 20_000);
  const forMs = Math.min(longMs, world.faultyMs - atMs);
  const share = draw.chance(0.4) ? 1 : draw.whole(5, 100) / 100;
  const sizeMs = SIZE[kind]?.(draw) ?? 0;
  return {
    kind,
    atMs,
    forMs: LENGTH[kind]?.(draw) ?? forMs,
    share: kind === 'neighbour' ? share + 0.5 : share,
    sizeMs: kind === 'reload-timeout' ? timeoutThatFits(world, target, sizeMs) : sizeMs,
    target,
  };
}

/** Where capacity is scarce a shorter timeout would be a configuration that the daemon refuses. */
function timeoutThatFits(world: World, target: number, sizeMs: number): number {
  const scarce =
    world.budgetRequests < BUDGET_REQUESTS ||
    (world.nonce === 'increasing' && world.roundTripMs * 3 > longestRoundTripMs(world.markets));
  const timeoutMs = (world.markets[target]?.timeoutSeconds ?? 0) * 1000;
  return scarce ? Math.max(sizeMs, timeoutMs) : sizeMs;
}

function drawTarget(draw: Draw, kind: FaultKind, world: World): number {
  const all = draw.chance(0.6);
  const struck = FAULTS[kind];
  if (struck === 'exchange' || (struck === 'requests' && all)) return -1;
  const { markets, daemons, bots: bot, bases: base } = world;
  const counts = { requests: markets.length, market: markets.length, daemon: daemons.length, bot, base };
  return draw.whole(0, counts[struck] - 1);
}

/** Lengths that are not those of an outage. */
const LENGTH: Partial<Record<FaultKind, (draw: Draw) => number>> = {
  stall: (draw) => (draw.chance(0.6) ? draw.between(100, 3_000) : draw.between(3_000, 60_000)),
  suspend: (draw) => draw.between(1_000, 60_000),
  // Long enough for the next request to come, and for the longest of them.
  'halts-connecting': () => 16_000,
  crash: (draw) => draw.between(500, 20_000),
  restart: (draw) => draw.between(10, 8_000),
  'new-key': (draw) => draw.between(0, 3_000),
  'refusal-page': (draw) => draw.between(300, 8_000),
  // Half of them longer than evidence lasts.
  // Half of them longer than the handover.
  'reload-moves': (draw) => (draw.chance(0.5) ? draw.between(100, 20_000) : draw.between(20_000, 90_000)),
  'bot-silent': (draw) => (draw.chance(0.5) ? draw.between(100, 15_000) : draw.between(15_000, 60_000)),
};

const SIZE: Partial<Record<FaultKind, (draw: Draw) => number>> = {
  // A long tail that stays below the lifetime of a request: every eighth is longer than an attempt may take.
  delay: (draw) => Math.min(9_900, Math.round(500 / (1 - draw.whole(0, 9930) / 10_000) ** 2) / 10),
  'slow-body': (draw) => draw.between(100, 5_000),
  duplicate: (draw) => draw.between(1, 3_000),
  'new-budget': (draw) => draw.whole(1000, 4000),
  'refusal-page': (draw) => draw.whole(0, 2),
  'grants-less': (draw) => 1000 * draw.whole(5, 60),
  'base-slow': (draw) => draw.between(300, 4_500),
  'wall-step': (draw) => draw.between(-300_000, 300_000),
  'server-clock-step': (draw) => draw.between(-3_000, 3_000),
  reorder: (draw) => draw.between(10, 3_000),
  'halts-connecting': (draw) => draw.between(800, 8_000),
  'bot-flaps': (draw) => draw.between(1_000, 20_000),
  stutters: (draw) => draw.between(260, 900),
  'reload-moves': (draw) => draw.between(0, 15_000),
  'reload-timeout': (draw) => 1000 * (draw.chance(0.7) ? draw.pick(TIMEOUTS) : draw.whole(5, 600)),
};
