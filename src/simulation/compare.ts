import { createRandom } from '../simulator/random.ts';
import { createTimeline } from '../simulator/virtual-clock.ts';
import { PRODUCTION_RULE } from './production-rule.ts';
import { DOCUMENTED_RULES, type Rule } from './rules.ts';
import { createSingleTimer, OUTAGE_KINDS, type Outage, type OutageKind } from './single-timer.ts';

export const COMPARED_TIMEOUTS_SECONDS = [5, 15, 60, 600] as const;
export const COMPARED_RULES: readonly Rule[] = [PRODUCTION_RULE, ...DOCUMENTED_RULES];

export interface CompareOptions {
  /** Outages at a random phase that every rule goes through, per timeout and kind of outage. */
  readonly samples: number;
  /** Phases per period that the search for the worst one tries. */
  readonly phases: number;
  readonly seed: number;
  readonly roundTripMs: number;
}

export interface Survival {
  /** Longest outage that is survived at the worst phase, as a share of T. */
  readonly worst: number;
  /** The same at a random phase, on average. */
  readonly average: number;
  /** Probability that an outage of log-normal length (median T/2, sigma 1) at a random phase lets the timer fire. */
  readonly lapse: number;
}

export interface Row {
  readonly rule: Rule;
  /** Renewals a second while all is well. */
  readonly requestsPerSecond: number;
  readonly survival: Readonly<Record<OutageKind, Survival>>;
}

export interface Comparison {
  readonly timeoutSeconds: number;
  /** `PRODUCTION_RULE` first. */
  readonly rows: readonly Row[];
  /** Where another rule is ahead, in words; empty where none is. */
  readonly ahead: readonly Ahead[];
}

export interface Ahead {
  /** At the same or a lower request rate: what must not be. */
  readonly unexcused: boolean;
  readonly sentence: string;
}

/** One moment for an outage to begin. */
interface Start {
  readonly seed: number;
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
const FRACTIONS = [0.999, 0.66, 0.33] as const;
/** Lengths of outages are told apart to this share of T. */
const RESOLUTION = 1 / 2000;
/** Figures of two rules that are closer than this are equal. */
const TIE = 0.001;

/** Puts every rule through the same outages of a timer of `timeoutSeconds`. Equal options give equal figures. */
export function compareAt(timeoutSeconds: number, options: CompareOptions): Comparison {
  const rows = COMPARED_RULES.map((rule) => measure(rule, timeoutSeconds * 1000, options));
  return { timeoutSeconds, rows, ahead: findAhead(rows) };
}

/** Longest outage that the rule survives when it begins at the worst moment, as a share of T. */
export function worstShare(
  rule: Rule,
  timeoutSeconds: number,
  kind: OutageKind,
  options: CompareOptions,
): number {
  return createBench(rule, timeoutSeconds * 1000, options).worstMs(kind) / (timeoutSeconds * 1000);
}

function measure(rule: Rule, timeoutMs: number, options: CompareOptions): Row {
  const bench = createBench(rule, timeoutMs, options);
  const draw = createRandom(options.seed);
  const starts = Array.from({ length: options.samples }, (_, index): Start => {
    const phase = (index + 1 - draw()) / options.samples;
    return { seed: options.seed, cycle: Math.floor(draw() * CYCLES), phase, fraction: draw() };
  });
  const survive = (kind: OutageKind): Survival => {
    const longestMs = starts.map((start) => bench.longestMs(kind, start));
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    return {
      worst: Math.min(bench.worstMs(kind), ...longestMs) / timeoutMs,
      average: mean(longestMs) / timeoutMs,
      lapse: mean(longestMs.map((ms) => longerThan(ms / timeoutMs))),
    };
  };
  return {
    rule,
    requestsPerSecond: bench.requestsPerSecond,
    survival: { refused: survive(OUTAGE_KINDS[0]), 'black hole': survive(OUTAGE_KINDS[1]) },
  };
}

/** Plays one rule again and again, each time from its start to the end of one outage. */
function createBench(rule: Rule, timeoutMs: number, { roundTripMs, seed, phases }: CompareOptions) {
  function begin(clockMs: number, outage: Outage | null) {
    const timeline = createTimeline(0);
    const timer = createSingleTimer({ timeline, timeoutMs, roundTripMs, clockMs, outage });
    rule.start({ timeline, timer, timeoutMs, seed });
    return { timeline, timer };
  }
  const calm = begin(0, null);
  while (calm.timer.appliedMs.length <= WARM_UP_RENEWALS + CYCLES) calm.timeline.next();
  const appliedMs = (cycle: number) => calm.timer.appliedMs[WARM_UP_RENEWALS + cycle] ?? 0;

  /** Null where the timer fired, else true; with what else there is to know about the run. */
  function play(kind: OutageKind, start: Start, forMs: number) {
    const lastMs = appliedMs(start.cycle);
    const fromMs = lastMs + start.phase * (appliedMs(start.cycle + 1) - lastMs);
    const clockMs = start.fraction * 1000 - (lastMs % 1000);
    const { timeline, timer } = begin(clockMs, { kind, fromMs, untilMs: fromMs + forMs });
    const isOver = () => (timer.appliedMs.at(-1) ?? 0) >= fromMs + forMs;
    const hasFired = () => timeline.nowMs() >= (timer.firesAtMs() ?? Number.POSITIVE_INFINITY);
    // A rule that gave up plans nothing any more.
    while (!isOver() && !hasFired() && timeline.next()) continue;
    return {
      survived: isOver(),
      fromMs,
      firesAtMs: timer.firesAtMs() ?? 0,
      lastChanceMs: timer.lastChanceMs(),
    };
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

  /** Over a grid of starts; one that survives a little more than the worst so far is left alone. */
  function worstMs(kind: OutageKind): number {
    let worst = Number.POSITIVE_INFINITY;
    for (const fraction of FRACTIONS) {
      for (let cycle = 0; cycle < CYCLES; cycle += 1) {
        for (let phase = phases; phase > 0; phase -= 1) {
          const start = { seed, cycle, phase: phase / phases, fraction };
          if (worst === Number.POSITIVE_INFINITY || !play(kind, start, worst).survived) {
            worst = Math.min(worst, longestMs(kind, start));
          }
        }
      }
    }
    return worst;
  }

  const requestsPerSecond = (CYCLES * 1000) / (appliedMs(CYCLES) - appliedMs(0));
  return { requestsPerSecond, longestMs, worstMs };
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

function findAhead(rows: readonly Row[]): Ahead[] {
  const [ours, ...others] = rows;
  if (ours === undefined) return [];
  return others.flatMap((other) =>
    OUTAGE_KINDS.flatMap((kind): Ahead[] => {
      const mine = ours.survival[kind];
      const its = other.survival[kind];
      const said: string[] = [];
      if (its.worst > mine.worst + TIE) {
        said.push(`survives ${percent(its.worst)} at worst, against ${percent(mine.worst)}`);
      }
      if (its.lapse < mine.lapse - TIE) {
        said.push(`lapses in ${percent(its.lapse)} of outages, against ${percent(mine.lapse)}`);
      }
      if (said.length === 0) return [];
      const unexcused = other.requestsPerSecond <= ours.requestsPerSecond * (1 + TIE);
      const cost = (other.requestsPerSecond / ours.requestsPerSecond).toFixed(2);
      const sentence = `${other.rule.name} (${kind}) ${said.join(' and ')}, at ${cost} times the requests`;
      return [{ unexcused, sentence }];
    }),
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
