import { clamp } from './time.ts';

/** The core looks at the clocks at least this often: that is how it notices that time was lost. */
export const TICK_MS = 250;
/** The fewest renewals that must fit into a timeout: one may be lost and one may be late. */
export const LEAST_ATTEMPTS = 3;
const SHARE = 0.1;
const LOST_AT_MOST = 0.15;
const ROUNDING_AND_GAP_MS = 1250;
/** Stretched by this, every period is a third of its timeout. */
const MOST_STRETCH = 5;
/** Two renewals within one second of the exchange's clock are worth the same: it counts whole seconds. */
const SHORTEST_PERIOD_MS = 1000;
const LONGEST_PERIOD_MS = 10_000;

export interface Cadenced {
  readonly market: string;
  readonly timeoutMs: number;
  readonly renewEveryMs: number | null;
}

export interface CadencePlan {
  /** One period per market, in the order given. */
  readonly periodsMs: readonly number[];
  /** Sentences about markets whose timeout would not fit three renewals; empty when the plan holds. */
  readonly problems: readonly string[];
}

/**
 * How often each market is renewed: proportional to its timeout, so that every market survives the same share of it
 * (relative max-min), within 1 s and 10 s, as often as `capacityPerSecond` requests a second allow. Long timers give
 * way first: the upper bound of 10 s is lifted before anybody gets fewer renewals than it should have, and only then
 * are all periods stretched alike, until three fit into each timeout.
 */
export function planCadence(markets: readonly Cadenced[], capacityPerSecond: number): CadencePlan {
  const periodOf = (stretch: number, longestMs: number) => (market: Cadenced) =>
    market.renewEveryMs ??
    clamp(
      Math.min(desiredPeriodMs(market.timeoutMs), longestMs) * stretch,
      SHORTEST_PERIOD_MS,
      market.timeoutMs / LEAST_ATTEMPTS,
    );
  const rate = (stretch: number, longestMs: number) => {
    let sum = 0;
    const period = periodOf(stretch, longestMs);
    for (const market of markets) sum += 1000 / period(market);
    return sum;
  };
  const fits = (stretch: number, longestMs: number) => rate(stretch, longestMs) <= capacityPerSecond;

  const slowestMs = markets.reduce(
    (most, { timeoutMs }) => Math.max(most, timeoutMs * SHARE),
    LONGEST_PERIOD_MS,
  );
  let stretch = 1;
  let longestMs = LONGEST_PERIOD_MS;
  if (!fits(stretch, longestMs)) {
    if (fits(stretch, slowestMs)) {
      longestMs = smallestThatFits(LONGEST_PERIOD_MS, slowestMs, (ms) => fits(1, ms));
    } else {
      longestMs = slowestMs;
      stretch = smallestThatFits(1, MOST_STRETCH, (factor) => fits(factor, slowestMs));
    }
  }
  const periodsMs = markets.map(periodOf(stretch, longestMs));
  return {
    periodsMs,
    problems: findProblems(markets, periodsMs, rate(stretch, longestMs), capacityPerSecond),
  };
}

/**
 * The period where nothing presses: a tenth of the timeout. Timers between 10 and 25 s get a shorter one: rounding and
 * the last gap cost them more, and period, rounding and gap together shall not cost more than 15 % of the timeout.
 */
function desiredPeriodMs(timeoutMs: number): number {
  return Math.max(
    SHORTEST_PERIOD_MS,
    Math.min(timeoutMs * SHARE, timeoutMs * LOST_AT_MOST - ROUNDING_AND_GAP_MS),
  );
}

function findProblems(
  markets: readonly Cadenced[],
  periodsMs: readonly number[],
  neededPerSecond: number,
  capacityPerSecond: number,
): string[] {
  const problems: string[] = [];
  markets.forEach((market, index) => {
    const periodMs = periodsMs[index] ?? Number.POSITIVE_INFINITY;
    if (market.timeoutMs / periodMs < LEAST_ATTEMPTS - 1e-9) {
      problems.push(
        `${market.market}: a renewal every ${seconds(periodMs)} fits ${Math.floor(market.timeoutMs / periodMs)} attempts into a timeout of ${seconds(market.timeoutMs)}; at least ${LEAST_ATTEMPTS} must fit: renew at least every ${seconds(market.timeoutMs / LEAST_ATTEMPTS)} or raise the timeout`,
      );
    }
  });
  if (neededPerSecond > capacityPerSecond * (1 + 1e-9)) {
    problems.push(
      `${markets.length} markets need ${neededPerSecond.toFixed(1)} renewals a second to fit ${LEAST_ATTEMPTS} attempts into every timeout, ${capacityPerSecond.toFixed(1)} can be carried, with some room left for retries: raise exchange.budgetShare or the timeouts, or take fewer markets`,
    );
  }
  return problems;
}

/** Smallest value between `low` (which does not fit) and `high` that fits, to one part in a million. */
function smallestThatFits(low: number, high: number, fits: (value: number) => boolean): number {
  let left = low;
  let right = high;
  for (let round = 0; round < 20; round += 1) {
    const middle = (left + right) / 2;
    if (fits(middle)) right = middle;
    else left = middle;
  }
  return right;
}

/** A refused key is tried again no more often than this: exchanges lock accounts out for less. */
export const KEY_PROBE_MS = 60_000;
/** What was good a moment ago gets a second look before it is latched: one wrong answer must not cost the book. */
export const LOOKS = 2;
/** No two attempts of a market follow each other faster, whatever happens between them. */
export const SHORTEST_GAP_MS = 250;
/** Attempts for a market whose guarantee ran out (or never began) follow each other at this distance. */
const UNPROTECTED_GAP_MS = 500;

/**
 * How long after an attempt the next one follows when no success came: a share of the slack that is left ("reverse
 * backoff"), so that attempts get denser as the deadline comes near. The end of an outage is unknown, only the last
 * gap before the deadline costs. `slackMs` <= 0 means that nothing is left to save.
 */
export function retryGapMs(slackMs: number, throttled: boolean): number {
  if (slackMs <= 0) return throttled ? 2 * UNPROTECTED_GAP_MS : UNPROTECTED_GAP_MS;
  return throttled ? clamp(slackMs / 2, SHORTEST_GAP_MS, 10_000) : clamp(slackMs / 4, SHORTEST_GAP_MS, 5000);
}

/**
 * The gap to the next attempt, or, where the deadline is so near that only one more fits, the time until the last
 * moment at which a renewal that takes `needsMs` to arrive is still in time. Only the last attempt decides how long an
 * outage may last: it is placed, not left to where the gaps happen to end.
 */
export function gapToLastChanceMs(slackMs: number, gapMs: number, needsMs: number): number {
  const lastMs = slackMs - needsMs;
  return lastMs >= SHORTEST_GAP_MS && lastMs - gapMs < SHORTEST_GAP_MS ? lastMs : gapMs;
}

/** An attempt is listened to for so long at most, as long as nothing else needs its place. */
export const LONGEST_LISTEN_MS = 10_000;

/**
 * How long one attempt may stay unanswered. Three always fit into the slack. Where the round trip is long the bound
 * follows it: a deadline below the round trip would never see an answer.
 */
export function attemptDeadlineMs(slackMs: number, roundTripMs: number): number {
  const least = clamp(3 * roundTripMs, 500, LONGEST_LISTEN_MS);
  if (least > 3000) return least;
  return slackMs <= 0 ? Math.max(1500, least) : clamp(slackMs / 3, least, 3000);
}

/** 0.9 to 1 times the value; the same for the same `seed` and `count`, so that a run can be repeated. */
export function jittered(valueMs: number, seed: number, count: number): number {
  let hash = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(count + 1, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return valueMs * (1 - ((hash >>> 8) / 0x1000000) * 0.1);
}

/** `60 s`, `7.5 s`: a duration for a sentence. */
export function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(3))} s`;
}
