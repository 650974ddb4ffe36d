import { bearableMs, cadencePerMs, leastBudget, leastPerMs } from './conditions.ts';
import { FAULT_KINDS, FAULTS, type Fault, type FaultKind, type Plan, type PlannedMarket } from './plan.ts';
import {
  createDraw,
  type Draw,
  drawCount,
  drawFault,
  drawOutages,
  longestRoundTripMs,
  mixtureOf,
  RARE_KINDS,
  renewalsPerSecond,
  tightBudget,
  withFaults,
} from './swarm.ts';

/**
 * The plan of a seed. Half of the plans hold one large trouble by itself, so that what it promises can be judged: markets
 * that stay sick among healthy ones, exchanges that answer late, many markets, long timers, lives that follow each other
 * within the lifetime of a request, refusals of a few seconds. The others mix all kinds of faults and settings. One in ten
 * holds a large trouble and some of all kinds on top.
 */
export function planOf(seed: number): Plan {
  const draw = createDraw(seed ^ SHAPE_STREAM);
  const shape = seed % 10 === 0 ? drawOnTop : shapeOf(draw);
  return shape(draw, mixtureOf(seed));
}

/** One with many markets costs as much as twenty others. */
function shapeOf(draw: Draw): Shape {
  if (draw.chance(0.01)) return drawMany;
  return draw.chance(0.5) ? drawMixed : draw.pick(SHAPES);
}

type Shape = (draw: Draw, plan: Plan) => Plan;

/** What makes judges look away for most of the run. */
const UNTOPPED: ReadonlySet<FaultKind> = new Set([
  'grants-less',
  'lie',
  'forget-timers',
  'server-clock-step',
  'actor-deletes',
  'actor-changes',
  'neighbour',
]);

const SHAPE_STREAM = 0x31_de5;
const MINUTE_MS = 60_000;
/** What a stop may take; the next life of a daemon begins 10 s later at the soonest. */
const STOP_SECONDS = [8, 8, 8, 1, 2, 4, 10] as const;

/** A world with one daemon, a budget that is large enough, and nothing wrong yet. */
function plain(draw: Draw, plan: Plan, timeouts: readonly number[], count: number): Plan {
  const markets = Array.from(
    { length: count },
    (_, index): PlannedMarket => ({
      market: `M${index}_USDT`,
      timeoutSeconds: draw.pick(timeouts),
      types: null,
      bot: draw.whole(0, plan.bots - 1),
    }),
  );
  const [first] = plan.daemons;
  const daemons = first === undefined ? [] : [{ ...first, startMs: 0, key: 0 }];
  const quick = { roundTripMs: draw.pick([2, 10, 20]), budgetRequests: 5000, limitRequests: 10_000 };
  return { ...plan, ...quick, markets, daemons, bases: 1, faults: [] };
}

function fault(kind: FaultKind, atMs: number, forMs: number, sizeMs: number, target: number): Fault {
  const rounded = { atMs: Math.round(atMs), forMs: Math.round(forMs), sizeMs: Math.round(sizeMs) };
  return { kind, share: 1, target, ...rounded };
}

const SICK = [
  'delay',
  'slow-body',
  'black-hole',
  'server-error',
  'gateway-page',
  'reset-after',
  'refuse-connections',
] as const;

/** Up to fifteen markets are sick for minutes, and in half of the plans the exchange is away again and again on top. */
const drawSick: Shape = (draw, plan) => {
  const world = plain(draw, plan, [5, 5, 10, 15, 30, 60], drawCount(draw, 2));
  const connections = draw.pick([64, 64, 1, 2, 4, 8]);
  if (draw.chance(0.2)) return drawEndings(draw, plan);
  return withFaults({ ...world, connections }, drawSickOnes(draw, world));
};

/** Timers of many markets are to be ended, and all that is asked for them fails, beside two that are well. */
const drawEndings: Shape = (draw, plan) => {
  const world = plain(draw, plan, [60], draw.whole(7, 12));
  const markets = world.markets.map((market, index) =>
    index < 2 ? { ...market, timeoutSeconds: 10 } : market,
  );
  const ends = ['operator-disarms', 'operator-pauses', 'operator-trips', 'reload-remove'] as const;
  const end = draw.pick(ends);
  const trouble = draw.pick(['server-error', 'bad-payload', 'gateway-page', 'black-hole'] as const);
  const atMs = draw.between(20_000, 60_000);
  const faults = markets.flatMap((_, target) =>
    target < 2 ? [] : [fault(trouble, atMs, 60_000, 0, target), fault(end, atMs + 500, 60_000, 0, target)],
  );
  return withFaults({ ...world, markets, roundTripMs: 100 }, faults);
};

function drawSickOnes(draw: Draw, world: Plan): Fault[] {
  const { markets, faultyMs } = world;
  const most = Math.min(15, markets.length - 1);
  const sick = draw.chance(0.5) ? draw.whole(1, Math.min(2, most)) : draw.whole(1, most);
  const kinds = draw.chance(0.5) ? [draw.pick(SICK)] : SICK;
  const slowest = draw.pick([700, 1500, 4000]);
  const atMs = draw.between(10_000, 40_000);
  const forMs = Math.min(draw.between(0.5 * MINUTE_MS, 2.2 * MINUTE_MS), faultyMs - atMs);
  const faults = Array.from({ length: sick }, (_, target) =>
    fault(draw.pick(kinds), atMs, forMs, draw.between(500, slowest), target),
  );
  return draw.chance(0.5) ? [...faults, ...drawOutages(draw, world)] : faults;
}

/** The whole exchange answers late, from the start or for a minute or two, but in time for every timer. */
const drawSlow: Shape = (draw, plan) => {
  const timeouts = draw.pick([[5], [10], [30], [60], [30, 60, 120], [5, 30, 60]]);
  const world = plain(draw, plan, timeouts, drawCount(draw, 1));
  const bearable = Math.min(...world.markets.map(({ market }) => bearableMs(world, market)));
  const sizeMs = Math.max(50, bearable * draw.between(0.6, 0.99));
  const kind = draw.pick(['slow-body', 'delay'] as const);
  const always = draw.chance(0.5);
  const atMs = always ? 0 : draw.between(10_000, 60_000);
  const forMs = always ? world.faultyMs : draw.between(30_000, 110_000);
  const slow = fault(kind, atMs, forMs, sizeMs, -1);
  if (world.nonce === 'increasing' || draw.chance(0.5)) return withFaults(world, [slow]);
  // Fewer connections than three renewals of every timer need, and enough for one; and every delete takes one.
  const needed = (world.roundTripMs + sizeMs) * leastPerMs(world.markets);
  const connections = Math.min(64, Math.max(2, Math.ceil(needed / draw.between(1, 1.75))));
  const acts = Array.from({ length: draw.whole(0, 4) }, () =>
    fault(
      draw.pick(['operator-pauses', 'operator-disarms', 'reload-remove'] as const),
      draw.between(20_000, 90_000),
      draw.between(5000, 40_000),
      3000,
      draw.whole(0, world.markets.length - 1),
    ),
  );
  return withFaults({ ...world, connections }, [slow, ...acts]);
};

const drawMany: Shape = (draw, plan) => {
  const count = draw.whole(50, 200);
  const timeouts = plan.nonce === 'window' ? [10, 30, 60, 60, 120] : [120, 300, 600];
  const world = plain(draw, { ...plan, faultyMs: 90_000 }, timeouts, count);
  return withFaults({ ...world, roundTripMs: 2 }, drawOutages(draw, world));
};

/** A fleet whose cadence uses most of its budget, and outages that it must survive all the same. */
const drawBusy: Shape = (draw, plan) => {
  const timeouts = draw.pick([[5, 10], [5, 600], [10], [20], [30], [10, 20, 60]]);
  const world = plain(draw, { ...plan, faultyMs: 100_000 }, timeouts, draw.whole(6, 18));
  const busy = {
    ...world,
    roundTripMs: draw.pick([2, 10]),
    budgetRequests: Math.ceil(leastBudget(world.markets) * draw.between(1, 1.3)),
    connections: draw.pick([64, 16, 4]),
  };
  const drawFaults = draw.pick([drawHoles, drawHoles, drawSickOnes, drawSlowSpells]);
  return withFaults(busy, drawFaults(draw, busy));
};

/** Outages in which most requests get no answer. */
function drawHoles(draw: Draw, world: Plan): Fault[] {
  return drawOutages(draw, world, ['black-hole', 'lose-reply', 'lose-reply', 'server-error']);
}

/** Outages nearly as long as must be survived, and around the end of each some markets are sick by themselves for seconds. */
const drawEnds: Shape = (draw, plan) => {
  const timeouts = draw.pick([
    [5, 10],
    [5, 10],
    [5, 10, 30],
    [10, 15, 30],
  ]);
  const world = plain(draw, { ...plan, faultyMs: 100_000 }, timeouts, draw.whole(6, 14));
  const busy = draw.chance(0.5)
    ? { ...world, budgetRequests: Math.ceil(leastBudget(world.markets) * draw.between(1, 1.3)) }
    : world;
  const outages = drawOutages(draw, busy, ['refuse-connections', 'server-error']);
  const sick = outages.flatMap(({ atMs, forMs }) =>
    Array.from({ length: draw.whole(2, Math.floor(world.markets.length / 2)) }, (_, target) =>
      fault(
        draw.pick(['black-hole', 'black-hole', 'black-hole', ...SICK]),
        atMs + forMs + draw.between(-1500, 0),
        draw.between(1000, 4000),
        draw.between(500, 1500),
        target,
      ),
    ),
  );
  return withFaults(busy, [...outages, ...sick]);
};

/** All answers are late for some seconds, again and again. */
function drawSlowSpells(draw: Draw, { faultyMs }: Plan): Fault[] {
  const faults: Fault[] = [];
  for (
    let atMs = draw.between(10_000, 20_000);
    atMs < faultyMs - 15_000;
    atMs += draw.between(20_000, 40_000)
  )
    faults.push(fault('delay', atMs, draw.between(3000, 15_000), draw.between(500, 4500), -1));
  return faults;
}

/** Requests that go one after the other through most of their time, and outages that all must survive as printed. */
const drawSerial: Shape = (draw, plan) => {
  const timeouts = draw.pick([[10], [20], [30], [60], [10, 20, 60], [30, 60]]);
  const world = plain(draw, { ...plan, faultyMs: 120_000 }, timeouts, draw.whole(6, 30));
  const roundTripMs = draw.between(0.25, 0.69) / cadencePerMs(world.markets);
  const busy = { ...world, nonce: 'increasing' as const, roundTripMs: Math.round(roundTripMs) };
  return withFaults(busy, drawOutages(draw, busy));
};

/** Many markets that are armed one after the other, and nothing wrong. */
const drawStart: Shape = (draw, plan) => {
  const timeouts = draw.pick([[30], [30, 60], [10, 60]]);
  const world = plain(draw, { ...plan, faultyMs: 20_000 }, timeouts, draw.whole(40, 80));
  const roundTripMs = Math.min(draw.pick([30, 60]), longestRoundTripMs(world.markets));
  return { ...world, nonce: draw.chance(0.8) ? 'increasing' : 'window', roundTripMs };
};

/** One bot says goodbye, the other one falls silent, and the daemon stops while the exchange is away for a while. */
const drawStops: Shape = (draw, plan) => {
  const world = plain(draw, { ...plan, watched: true, bots: 2 }, [30, 60, 120], draw.whole(2, 6));
  const faults: Fault[] = [];
  for (let atMs = draw.between(15_000, 30_000); atMs < world.faultyMs - 40_000; atMs += 40_000) {
    const stopMs = atMs + draw.between(500, 12_000);
    const goodbyeMs = stopMs + draw.between(-3000, 1000);
    const leaving = draw.whole(0, 1);
    const kind = draw.pick(['black-hole', 'refuse-connections', 'server-error', 'reset-before'] as const);
    faults.push(
      fault(kind, atMs, stopMs - atMs + draw.between(0, 7000), 0, -1),
      fault('bot-goodbye', goodbyeMs, 20_000, 0, leaving),
      fault('bot-silent', stopMs - draw.between(0, 8000), 20_000, 0, 1 - leaving),
      fault('terminate', stopMs, 10_000, 0, 0),
    );
  }
  const daemons = world.daemons.map((daemon) => ({ ...daemon, policy: 'delete' as const }));
  const nonce = draw.chance(0.8) ? 'increasing' : 'window';
  return withFaults({ ...world, daemons, nonce }, faults);
};

/** Long timers, and outages of minutes: most of them nearly as long as the shortest must survive, some longer. */
const drawLong: Shape = (draw, plan) => {
  const world = plain(draw, { ...plan, faultyMs: 20 * MINUTE_MS }, [200, 300, 600], draw.whole(1, 3));
  const kind = draw.pick(['black-hole', 'refuse-connections', 'server-error'] as const);
  const faults = draw.chance(0.5)
    ? drawOutages(draw, world)
    : [fault(kind, draw.between(20_000, 60_000), draw.between(3 * MINUTE_MS, 12 * MINUTE_MS), 0, -1)];
  return withFaults({ ...world, onLapse: draw.pick(['rearm', 'hold'] as const) }, faults);
};

/** Lives that begin while requests of the life before are still on their way. */
const drawLives: Shape = (draw, plan) => {
  const world = plain(draw, plan, [5, 15, 30, 60], draw.whole(1, 4));
  const faults: Fault[] = [];
  const endMs = world.faultyMs - 30_000;
  for (let atMs = draw.between(10_000, 30_000); atMs < endMs; atMs += draw.between(8_000, 40_000)) {
    const target = draw.chance(0.5) ? -1 : draw.whole(0, world.markets.length - 1);
    faults.push(
      fault('delay', atMs - draw.between(0, 3000), draw.between(50, 4000), draw.between(500, 9500), target),
    );
    const kind = draw.pick(['restart', 'restart', 'crash', 'terminate'] as const);
    faults.push(fault(kind, atMs, draw.between(10, 4000), 0, 0));
  }
  return withFaults({ ...world, nonce: draw.chance(0.8) ? 'window' : 'increasing' }, faults);
};

/** A bot falls silent, fails or says goodbye, and nothing else is wrong: by when its timers fire is judged then. */
const drawDeaths: Shape = (draw, plan) => {
  const world = plain(draw, { ...plan, watched: true }, [5, 10, 30, 60], drawCount(draw, 1));
  const faults: Fault[] = [];
  const endMs = world.faultyMs - 40_000;
  for (let atMs = draw.between(15_000, 40_000); atMs < endMs; atMs += draw.between(40_000, 80_000)) {
    const kind = draw.pick(['bot-silent', 'bot-silent', 'bot-fails', 'bot-goodbye'] as const);
    faults.push(fault(kind, atMs, draw.between(5000, 40_000), 0, draw.whole(0, world.bots - 1)));
  }
  return withFaults({ ...world, onStale: draw.pick(['trip', 'trip', 'expire'] as const) }, faults);
};

const REFUSALS = ['unauthorised', 'forbidden', 'bad-request', 'refusal-page', 'refusal-page'] as const;

/** Everything, or one market, is refused for a few seconds. */
const drawRefusals: Shape = (draw, plan) => {
  const world = plain(draw, plan, draw.pick([[15], [30], [60], [10, 30, 60]]), draw.whole(1, 6));
  const faults: Fault[] = [];
  for (let atMs = draw.between(15_000, 40_000); atMs < world.faultyMs - 20_000; atMs += 50_000) {
    const target = draw.chance(0.7) ? -1 : draw.whole(0, world.markets.length - 1);
    faults.push(fault(draw.pick(REFUSALS), atMs, draw.between(300, 8000), draw.whole(0, 2), target));
  }
  return withFaults({ ...world, bases: draw.chance(0.3) ? 2 : 1 }, faults);
};

/** One of two addresses is worse than the other for minutes. */
const drawAddresses: Shape = (draw, plan) => {
  const world = plain(draw, plan, [5, 10, 30, 60], draw.whole(1, 8));
  const kind = draw.pick(['base-slow', 'base-errors', 'base-silent', 'base-refuses'] as const);
  const atMs = draw.between(0, 60_000);
  const worse = fault(kind, atMs, draw.between(20_000, 110_000), draw.between(300, 4500), draw.whole(0, 1));
  return withFaults({ ...world, bases: 2 }, [worse]);
};

/** The exchange grants shorter timers than it is asked for, for a while. */
const drawGrants: Shape = (draw, plan) => {
  const world = plain(draw, plan, [10, 30, 60, 120, 600], draw.whole(1, 6));
  const atMs = draw.between(0, 60_000);
  const target = draw.chance(0.5) ? -1 : draw.whole(0, world.markets.length - 1);
  const forMs = draw.between(5000, 100_000);
  return withFaults(world, [fault('grants-less', atMs, forMs, 1000 * draw.whole(5, 60), target)]);
};

/** A tight budget that failures use up while the wall clock is set: what was spent stays spent. */
const drawTight: Shape = (draw, plan) => {
  const world = plain(draw, plan, [5, 10, 30, 60], drawCount(draw, 4));
  const atMs = draw.between(10_000, 40_000);
  const forMs = draw.between(30_000, 100_000);
  const failing = draw.pick(['server-error', 'lose-reply', 'reset-after'] as const);
  const faults = [{ ...fault(failing, atMs, forMs, 0, -1), share: draw.whole(50, 100) / 100 }];
  for (let stepMs = atMs + 5000; stepMs < atMs + forMs; stepMs += draw.between(3000, 20_000))
    faults.push(fault('wall-step', stepMs, 1, draw.between(-20_000, 60_000), 0));
  return withFaults({ ...world, budgetRequests: tightBudget(world.markets) }, faults);
};

/** Budgets count requests within 10 s, and until they are answered; a tenth of a tight one is for retries. */
const CARRIED_PER_SECOND = 0.08;

/**
 * The markets without the cadences that the budget cannot carry beside three renewals of every other timer: the daemon
 * refuses such a configuration.
 */
function carried(markets: readonly PlannedMarket[], budgetRequests: number): PlannedMarket[] {
  let perSecond = renewalsPerSecond(markets);
  return markets.map((market) => {
    const { renewEverySeconds, ...uncadenced } = market;
    if (renewEverySeconds === undefined) return market;
    const more = 1 / renewEverySeconds - 3 / market.timeoutSeconds;
    if (perSecond + more > CARRIED_PER_SECOND * budgetRequests) return uncadenced;
    perSecond += more;
    return market;
  });
}

const drawMixed: Shape = (draw, plan) => {
  const isReloaded = (index: number) =>
    plan.faults.some(({ kind, target }) => kind === 'reload-timeout' && target === index);
  const markets = plan.markets.map((market, index) => {
    if (!draw.chance(0.15) || isReloaded(index)) return market;
    const seconds = Math.round(market.timeoutSeconds / draw.whole(4, 24));
    return { ...market, renewEverySeconds: Math.max(1, seconds) };
  });
  const kinds = RARE_KINDS.filter((kind) => draw.chance(0.15) && kind !== 'grants-less');
  const more = kinds
    .filter((kind) => kind !== 'new-key' || plan.daemons.length === 1)
    .map((kind) => drawFault(draw, kind, plan));
  const onLapse = draw.chance(0.3) ? ('hold' as const) : ('rearm' as const);
  const connections = draw.pick([64, 64, 8, 4]);
  const stopSeconds = draw.pick(STOP_SECONDS);
  const cadenced = {
    ...plan,
    markets: carried(markets, plan.budgetRequests),
    onLapse,
    connections,
    stopSeconds,
  };
  return withFaults(cadenced, [...plan.faults, ...more]);
};

const TROUBLES = FAULT_KINDS.filter((kind) => FAULTS[kind] === 'requests' && !UNTOPPED.has(kind));
const INCIDENTS = FAULT_KINDS.filter(
  (kind) => /daemon|bot|market|base/.test(FAULTS[kind]) && !UNTOPPED.has(kind),
);

/**
 * One trouble after the other, and in the middle of each whatever else may happen at once: bots end or fall silent, each in
 * its own way, the daemon stops or stands still, clocks are set, the key is replaced, markets move or are taken out.
 */
const drawMidst: Shape = (draw, plan) => {
  const bots = draw.whole(1, 6);
  const timeouts = draw.pick([[5], [5, 600], [10, 30], [30, 60, 120], [5, 30, 60]]);
  const world = {
    ...plain(draw, { ...plan, bots }, timeouts, draw.whole(1, 8)),
    bases: draw.chance(0.3) ? 2 : 1,
  };
  const chance = draw.between(0.05, 0.25);
  const faults: Fault[] = [];
  for (
    let atMs = draw.between(6000, 30_000);
    atMs < world.faultyMs * 0.8;
    atMs += draw.between(20_000, 60_000)
  ) {
    const forMs = draw.between(300, 20_000);
    const strike = (kind: FaultKind, fromMs: number, longestMs: number) => {
      const one = drawFault(draw, kind, world);
      const startMs = Math.round(Math.max(0, fromMs));
      faults.push({ ...one, atMs: startMs, forMs: Math.round(Math.min(one.forMs, longestMs)) });
    };
    strike(draw.pick(TROUBLES), atMs, forMs);
    for (const kind of INCIDENTS)
      for (let count = FAULTS[kind] === 'bot' ? bots : 1; count > 0; count -= 1)
        if (draw.chance(chance) && (FAULTS[kind] !== 'base' || world.bases > 1))
          strike(kind, atMs + draw.between(-3000, forMs + 3000), world.faultyMs * 0.2);
  }
  const policy = draw.pick(['delete', 'delete', 'keep', 'handoff'] as const);
  const daemons = world.daemons.map((daemon) => ({ ...daemon, policy }));
  return withFaults({ ...world, daemons, stopSeconds: draw.pick(STOP_SECONDS) }, faults);
};

const SHAPES = [
  drawMidst,
  drawStops,
  drawEnds,
  drawEnds,
  drawSick,
  drawSick,
  drawSlow,
  drawSlow,
  drawLong,
  drawLives,
  drawDeaths,
  drawRefusals,
  drawAddresses,
  drawGrants,
  drawTight,
  drawBusy,
  drawBusy,
  drawSerial,
  drawStart,
  drawStops,
];

/** Where the exchange grants less than it is asked for, what is unanswered leaves a timer that nobody knows. */
const TOPPED = SHAPES.filter((shape) => shape !== drawGrants);

/** A large trouble, and up to four of all kinds on top of it. */
const drawOnTop: Shape = (draw, plan) => {
  const world = draw.pick(TOPPED)(draw, plan);
  const kinds = FAULT_KINDS.filter(
    (kind) =>
      !UNTOPPED.has(kind) &&
      (FAULTS[kind] !== 'base' || world.bases > 1) &&
      (kind !== 'new-key' || world.daemons.length === 1),
  );
  const more = Array.from({ length: draw.whole(1, 4) }, () => drawFault(draw, draw.pick(kinds), world));
  return withFaults(world, [...world.faults, ...more]);
};
