import { toCoreSettings } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { CoreSettings, FailureReason, Outcome } from '../../src/core/events.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { Cancel, Clock, Exchange } from '../../src/ports.ts';
import { createRandom } from '../../src/simulator/random.ts';
import { DOCUMENTED_RULES, type Rule, type RuleWorld } from './rules.ts';
import { createHostClock, createTimeline, type Timeline } from './virtual-clock.ts';

/**
 * How an outage shows. `refused`: every request is turned down at once, as a gateway does with its 503. `black hole`:
 * requests vanish and nothing ever answers them; none of them arrives late.
 */
export const OUTAGE_KINDS = ['refused', 'black hole'] as const;
export type OutageKind = (typeof OUTAGE_KINDS)[number];

/** Requests that arrive at the exchange from `fromMs` until just before `untilMs` come to nothing. True milliseconds. */
interface Outage {
  readonly kind: OutageKind;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** `unwritten`: it was no longer allowed to leave. Stamps are whole seconds of the exchange's clock. */
type Reply =
  | { readonly kind: 'applied'; readonly startTime: number; readonly cancellationTime: number }
  | { readonly kind: 'read' | 'refused' | 'unwritten' };

interface Letter {
  /** A `read` changes nothing: a ping, or a look at the lease. */
  readonly what: 'renew' | 'read';
  /** Needs a new connection first: one round trip more, through the same outage. */
  readonly fresh: boolean;
  readonly mayWrite?: () => boolean;
}

export type SingleTimer = ReturnType<typeof createSingleTimer>;

/**
 * One timer, and the wire to it, at an exchange that counts whole seconds and rounds them down: a renewal at 12.9 s of its clock makes a
 * timer that ends at 12 s + T. `clockMs` is how far its clock is ahead of true time. Each way takes half the round trip.
 */
function createSingleTimer(options: {
  readonly timeline: Timeline;
  readonly timeoutMs: number;
  readonly roundTripMs: number;
  readonly clockMs: number;
  readonly outage: Outage | null;
}) {
  const { timeline, timeoutMs, roundTripMs, clockMs, outage } = options;
  const appliedMs: number[] = [];
  let firesAtMs: number | null = null;
  let lastChanceMs = Number.NEGATIVE_INFINITY;
  const later = (delayMs: number, run: () => void) => timeline.at(timeline.nowMs() + delayMs, run);

  function apply(): Reply {
    const nowMs = timeline.nowMs();
    const startTime = Math.floor((nowMs + clockMs) / 1000);
    const cancellationTime = startTime + timeoutMs / 1000;
    // What had fired stays fired: a renewal after that makes a new timer and saves nothing.
    if (firesAtMs === null || nowMs < firesAtMs) {
      appliedMs.push(nowMs);
      firesAtMs = cancellationTime * 1000 - clockMs;
    }
    return { kind: 'applied', startTime, cancellationTime };
  }

  /** Sends; `settled` is called at most once, never synchronously, and not at all once the sender cancelled. */
  function send({ what, fresh, mayWrite }: Letter, settled: (reply: Reply) => void): Cancel {
    let cancelled = false;
    const answer = (reply: Reply) => {
      if (!cancelled) settled(reply);
    };
    const arrive = (applyInMs: number, onArrival: () => void) =>
      later(roundTripMs / 2, () => {
        const nowMs = timeline.nowMs();
        const inTime = firesAtMs === null || nowMs + applyInMs < firesAtMs;
        if (what === 'renew' && inTime) lastChanceMs = nowMs;
        if (outage === null || nowMs < outage.fromMs || nowMs >= outage.untilMs) onArrival();
        else if (outage.kind === 'refused') later(roundTripMs / 2, () => answer({ kind: 'refused' }));
      });
    const write = () => {
      if (cancelled) return;
      if (mayWrite?.() === false) {
        answer({ kind: 'unwritten' });
        return;
      }
      arrive(0, () => {
        const reply: Reply = what === 'renew' ? apply() : { kind: 'read' };
        later(roundTripMs / 2, () => answer(reply));
      });
    };
    if (fresh) arrive(roundTripMs, () => later(roundTripMs / 2, write));
    else write();
    return () => {
      cancelled = true;
    };
  }

  return {
    send,
    /** True milliseconds of the next firing; null before the first renewal. */
    firesAtMs: () => firesAtMs,
    /** True moments at which renewals were applied, in order. */
    appliedMs: appliedMs as readonly number[],
    /** Last moment at which a renewal came that would have been in time, had there been no outage any more. */
    lastChanceMs: () => lastChanceMs,
  };
}

const MARKET = 'BTC_USDT';
const BASE = 'https://simulated';

/** Not a model: the core and the keeper that run in production, with the settings of a fresh configuration. */
export const PRODUCTION_RULE: Rule = {
  name: 'killswitchd',
  renews: 'T/10 within 1 s and 10 s; retry after a quarter of what is left; overlapping',
  start(world) {
    const clock = createHostClock(world.timeline);
    createKeeper({
      settings: settingsOf(world),
      clock,
      exchange: createExchange(world.timer, clock),
      observe: () => {},
    }).start();
  },
};

function settingsOf({ timeoutMs }: RuleWorld): CoreSettings {
  const markets = `${MARKET}:${timeoutMs / 1000}`;
  const env = { KILLSWITCHD_MARKETS: markets, KILLSWITCHD_LIVENESS_MODE: 'none' };
  const loaded = loadConfig({ env, flags: { embeddedExchange: true } });
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.join('\n'));
  return toCoreSettings(loaded.config, [BASE]);
}

function createExchange(timer: SingleTimer, clock: Clock): Exchange {
  let pingHangs = false;
  return {
    sync({ fresh, signed, mayWrite }, settled) {
      signed();
      const giveUp = timer.send({ what: 'renew', fresh, mayWrite }, (reply) => settled(outcomeOf(reply)));
      return () => {
        giveUp();
        clock.after(0, () => settled(failed('timeout', 'given up', true)));
      };
    },
    ping(_base, timeoutMs, settled) {
      const begunMs = clock.now().monoMs;
      let over = false;
      const end = (ok: boolean, hangs: boolean) => {
        if (over) return;
        over = true;
        pingHangs = hangs;
        const latencyMs = clock.now().monoMs - begunMs;
        settled(ok ? { ok, latencyMs } : { ok, latencyMs, reason: 'network', detail: 'no pong' });
      };
      const cancel = timer.send({ what: 'read', fresh: pingHangs }, ({ kind }) =>
        end(kind === 'read', false),
      );
      clock.after(timeoutMs, () => {
        cancel();
        end(false, true);
      });
      return cancel;
    },
  };
}

function failed(reason: FailureReason, detail: string, maybeApplied: boolean): Outcome {
  return { kind: 'transient', reason, detail, maybeApplied };
}

function outcomeOf(reply: Reply): Outcome {
  if (reply.kind === 'unwritten') return failed('aborted', 'not allowed to leave', false);
  if (reply.kind !== 'applied') return failed('http_5xx', 'refused', true);
  const { startTime, cancellationTime } = reply;
  return { kind: 'applied', timer: { market: MARKET, startTime, cancellationTime, types: null } };
}

export const COMPARED_TIMEOUTS_SECONDS = [5, 15, 60, 600] as const;
export const COMPARED_RULES: readonly Rule[] = [PRODUCTION_RULE, ...DOCUMENTED_RULES];

export interface CompareOptions {
  /** Outages at a random phase that every rule goes through, per timeout and kind of outage. */
  readonly samples: number;
  /** Phases per period that the search for the worst one tries. */
  readonly phases: number;
  /** How often the search begins anew with other draws of the rules' jitter. */
  readonly lives: number;
  readonly seed: number;
  readonly roundTripMs: number;
}

export interface Survival {
  /** Longest outage that is survived, as a share of T: at the worst phase, and at a random one on average. */
  readonly worst: number;
  readonly average: number;
  /** Probability that an outage of log-normal length (median T/2, sigma 1) at a random phase lets the timer fire. */
  readonly lapse: number;
}

export type Comparison = ReturnType<typeof compareAt>;

interface Start {
  /** Which of the renewals after the warm-up is the last that gets through. */
  readonly cycle: number;
  /** Share of the period between it and the next one, above 0; at 1 the next one is the first that comes to nothing. */
  readonly phase: number;
  /** Share of a second of the exchange's clock at which it is applied: what rounding down takes from the timer. */
  readonly fraction: number;
}

/** Renewals before the first outage: by then every rule has settled, and round trips are measured. */
const WARM_UP_RENEWALS = 12;
const CYCLES = 4;
const FRACTIONS = [0.999, 0.5] as const;
/** Lengths of outages are told apart to this share of T. */
const RESOLUTION = 1 / 2000;
const TIE = 0.001;

/**
 * Puts the rules, `PRODUCTION_RULE` first, through the same outages of a timer of `timeoutSeconds`. Equal options give equal
 * figures. `ahead`: where another rule is ahead of it, in words; `atSameRate` is false where it pays with more requests.
 */
export function compareAt(
  timeoutSeconds: number,
  options: CompareOptions,
  rules: readonly Rule[] = COMPARED_RULES,
) {
  const rows = rules.map((rule) => measure(rule, timeoutSeconds * 1000, options));
  return { timeoutSeconds, rows, ahead: findAhead(rows) };
}

function measure(rule: Rule, timeoutMs: number, options: CompareOptions) {
  const { samples, phases, lives, seed, roundTripMs } = options;
  const benches = Array.from({ length: lives }, (_, life) =>
    createBench(rule, timeoutMs, roundTripMs, seed + life),
  );
  const draw = createRandom(seed);
  const starts = Array.from(
    { length: samples },
    (_, index): Start => ({
      cycle: Math.floor(draw() * CYCLES),
      phase: (index + 1 - draw()) / samples,
      fraction: draw(),
    }),
  );
  const survive = (kind: OutageKind): Survival => {
    const longestMs = starts.flatMap((start, index) => benches[index % lives]?.longestMs(kind, start) ?? []);
    const worstMs = benches.reduce(
      (worst, bench) => bench.worstMs(kind, phases, worst),
      Math.min(...longestMs),
    );
    return {
      worst: worstMs / timeoutMs,
      average: mean(longestMs) / timeoutMs,
      lapse: mean(longestMs.map((ms) => longerThan(ms / timeoutMs))),
    };
  };
  return {
    rule,
    requestsPerSecond: mean(benches.map((bench) => bench.requestsPerSecond)),
    survival: { refused: survive('refused'), 'black hole': survive('black hole') },
  };
}

/** Plays one rule again and again, each time from its start to the end of one outage. */
function createBench(rule: Rule, timeoutMs: number, roundTripMs: number, seed: number) {
  function begin(clockMs: number, outage: Outage | null) {
    const timeline = createTimeline(0);
    const timer = createSingleTimer({ timeline, timeoutMs, roundTripMs, clockMs, outage });
    rule.start({ timeline, timer, timeoutMs, seed });
    return { timeline, timer };
  }
  const calm = begin(0, null);
  while (calm.timer.appliedMs.length <= WARM_UP_RENEWALS + CYCLES && calm.timeline.next()) continue;
  const appliedMs = (cycle: number) => calm.timer.appliedMs[WARM_UP_RENEWALS + cycle] ?? 0;

  function play(kind: OutageKind, start: Start, forMs: number) {
    const lastMs = appliedMs(start.cycle);
    const fromMs = lastMs + start.phase * (appliedMs(start.cycle + 1) - lastMs);
    const clockMs = start.fraction * 1000 - (lastMs % 1000);
    const { timeline, timer } = begin(clockMs, { kind, fromMs, untilMs: fromMs + forMs });
    const isOver = () => (timer.appliedMs.at(-1) ?? 0) >= fromMs + forMs;
    const hasFired = () => timeline.nowMs() >= (timer.firesAtMs() ?? Number.POSITIVE_INFINITY);
    // A rule that gave up plans nothing any more.
    while (!isOver() && !hasFired() && timeline.next()) continue;
    const firesAtMs = timer.firesAtMs() ?? 0;
    return { survived: isOver(), fromMs, firesAtMs, lastChanceMs: timer.lastChanceMs() };
  }

  /**
   * Bisects between what is certain from a run through an endless outage: one that ends by the last attempt in time
   * is survived, one that outlasts the timer is not.
   */
  function longestMs(kind: OutageKind, start: Start): number {
    const endless = play(kind, start, Number.POSITIVE_INFINITY);
    let survivedMs = Math.max(0, endless.lastChanceMs - endless.fromMs);
    let lapsedMs = Math.max(survivedMs, endless.firesAtMs - endless.fromMs);
    while (lapsedMs - survivedMs > timeoutMs * RESOLUTION) {
      const middleMs = (survivedMs + lapsedMs) / 2;
      if (play(kind, start, middleMs).survived) survivedMs = middleMs;
      else lapsedMs = middleMs;
    }
    return survivedMs;
  }

  /** The smaller of `soFarMs` and the longest outage that is survived wherever on a grid of starts it begins. */
  function worstMs(kind: OutageKind, phases: number, soFarMs: number): number {
    let worst = soFarMs;
    for (const fraction of FRACTIONS) {
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        for (let phase = phases; phase > 0; phase -= 1) {
          const start = { cycle, phase: phase / phases, fraction };
          if (!play(kind, start, worst).survived) worst = Math.min(worst, longestMs(kind, start));
        }
      }
    }
    return worst;
  }

  const requestsPerSecond = (CYCLES * 1000) / (appliedMs(CYCLES) - appliedMs(0));
  return { requestsPerSecond, longestMs, worstMs };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Probability that a log-normal length (median T/2, sigma 1) is longer than this share of T. */
export function longerThan(share: number): number {
  if (share <= 0) return 1;
  const z = Math.log(share / 0.5) / Math.SQRT2;
  // Abramowitz and Stegun 7.1.26, good to 1.5e-7.
  const t = 1 / (1 + 0.3275911 * Math.abs(z));
  const poly =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  const tail = (poly * Math.exp(-z * z)) / 2;
  return z >= 0 ? tail : 1 - tail;
}

function findAhead([ours, ...others]: readonly ReturnType<typeof measure>[]) {
  if (ours === undefined) return [];
  return others.flatMap((other) =>
    OUTAGE_KINDS.flatMap((kind) => {
      const mine = ours.survival[kind];
      const its = other.survival[kind];
      const said: string[] = [];
      if (its.worst > mine.worst + TIE)
        said.push(`survives ${percent(its.worst)} at worst (${ours.rule.name} ${percent(mine.worst)})`);
      if (its.lapse < mine.lapse - TIE)
        said.push(`lapses in ${percent(its.lapse)} (${ours.rule.name} ${percent(mine.lapse)})`);
      if (said.length === 0) return [];
      const atSameRate = other.requestsPerSecond <= ours.requestsPerSecond * (1 + TIE);
      const cost = (other.requestsPerSecond / ours.requestsPerSecond).toFixed(2);
      const sentence = `${other.rule.name}, ${kind}: ${said.join(' and ')}, at ${cost} times the requests`;
      return [{ atSameRate, sentence }];
    }),
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

const PHASES = 12;
const LIVES = 8;
const NAME_WIDTH = 23;

/** The renewal rules of other clients and that of this daemon through the same simulated outages, as a table. */
export function compareCommand(
  given: Pick<CompareOptions, 'samples' | 'seed' | 'roundTripMs'>,
  out: (line: string) => void,
): void {
  const options = { ...given, phases: PHASES, lives: LIVES };
  for (const line of legend(options)) out(line);
  for (const timeoutSeconds of COMPARED_TIMEOUTS_SECONDS)
    for (const line of table(compareAt(timeoutSeconds, options))) out(line);
}

function legend({ samples, roundTripMs, seed }: CompareOptions): string[] {
  return [
    'One timer of T seconds, one outage. A share of T is how long the outage may last without the timer',
    'firing: worst, at the worst moment for it to begin; average, over random ones. Lapses: how many of',
    'the outages of log-normal length (median T/2, sigma 1) let it fire. Refused: turned down at once.',
    "Black hole: no answer until the client's own HTTP timeout. The exchange counts whole seconds and",
    'rounds down: at the worst moment nothing survives more than T - 1 s - period.',
    `Round trip ${roundTripMs} ms, ${samples} samples, seed ${seed}.`,
    '',
    ...COMPARED_RULES.map(({ name, renews }) => `${name.padEnd(NAME_WIDTH)} ${renews}`),
  ];
}

function table({ timeoutSeconds, rows, ahead }: Comparison): string[] {
  const title = `T = ${timeoutSeconds} s`.padEnd(NAME_WIDTH + 12);
  const columns = '  worst  average   lapses';
  const head = `${''.padEnd(NAME_WIDTH)}  renewals/s${columns}  ${columns}`;
  return [
    '',
    `${title}${OUTAGE_KINDS.map((kind) => `  ${kind}`.padEnd(columns.length)).join('  ')}`.trimEnd(),
    head,
    '-'.repeat(head.length),
    ...rows.map(({ rule, requestsPerSecond, survival }) =>
      [
        rule.name.padEnd(NAME_WIDTH),
        requestsPerSecond.toFixed(4).padStart(12),
        OUTAGE_KINDS.map((kind) => figures(survival[kind])).join('  '),
      ].join(''),
    ),
    ...(ahead.some(({ atSameRate }) => atSameRate)
      ? []
      : [`No other rule is ahead of ${COMPARED_RULES[0]?.name} at the same or a lower rate of requests.`]),
    ...ahead.map(
      ({ atSameRate, sentence }) => `${atSameRate ? 'AHEAD' : 'Ahead with more requests'}: ${sentence}.`,
    ),
  ];
}

function figures({ worst, average, lapse }: Survival): string {
  return percent(worst).padStart(7) + percent(average).padStart(9) + percent(lapse).padStart(9);
}
