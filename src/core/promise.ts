import type { CoreSettings, MarketSettings } from './events.ts';
import { clamp } from './time.ts';

/** The core looks at the clocks at least this often: that is how it notices that time was lost. */
export const TICK_MS = 500;
/** A wake-up that comes later than this is a stall: the host stood still, or the process did. */
export const LATE_MS = 250;
/** The fewest renewals that must fit into a timeout: one may be lost and one may be late. */
export const LEAST_ATTEMPTS = 3;
const SHARE = 0.1;
const LOST_AT_MOST = 0.15;
/** Stretched by this, every period is a third of its timeout. */
const MOST_STRETCH = 5;
/** Two renewals within one second of the exchange's clock are worth the same: it counts whole seconds. */
const SHORTEST_PERIOD_MS = 1000;
const LONGEST_PERIOD_MS = 10_000;

export type Cadenced = Pick<MarketSettings, 'market' | 'timeoutMs' | 'renewEveryMs'>;

export interface CadencePlan {
  /** One period per market, in the order given. */
  readonly periodsMs: readonly number[];
  /** How many times longer the periods come out where the capacity does not carry even these; else 1. */
  readonly overload: number;
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

  const slowestMs = Math.max(LONGEST_PERIOD_MS, ...markets.map(({ timeoutMs }) => timeoutMs * SHARE));
  const longestMs = smallestThatFits(LONGEST_PERIOD_MS, slowestMs, (ms) => fits(1, ms));
  const stretch = smallestThatFits(1, MOST_STRETCH, (factor) => fits(factor, longestMs));
  const periodsMs = markets.map(periodOf(stretch, longestMs));
  const neededPerSecond = rate(stretch, longestMs);
  const isCarried = neededPerSecond <= capacityPerSecond * (1 + 1e-9);
  const problems = findProblems(markets, periodsMs);
  if (!isCarried) problems.push(describeOverload(markets.length, neededPerSecond, capacityPerSecond));
  return { periodsMs, overload: isCarried ? 1 : neededPerSecond / capacityPerSecond, problems };
}

/**
 * The period where nothing presses: a tenth of the timeout. Timers between 10 and 25 s get a shorter one: rounding and
 * the last gap cost them more, and period, rounding and gap together shall not cost more than 15 % of the timeout.
 */
function desiredPeriodMs(timeoutMs: number): number {
  return Math.max(
    SHORTEST_PERIOD_MS,
    Math.min(timeoutMs * SHARE, timeoutMs * LOST_AT_MOST - ROUNDING_MS - SHORTEST_GAP_MS),
  );
}

function findProblems(markets: readonly Cadenced[], periodsMs: readonly number[]): string[] {
  return markets.flatMap(({ market, timeoutMs }, index) => {
    const periodMs = periodsMs[index] ?? Number.POSITIVE_INFINITY;
    if (timeoutMs / periodMs >= LEAST_ATTEMPTS - 1e-9) return [];
    return `${market}: a renewal every ${seconds(periodMs)} fits ${Math.floor(timeoutMs / periodMs)} attempts into a timeout of ${seconds(timeoutMs)}; at least ${LEAST_ATTEMPTS} must fit: renew at least every ${seconds(Math.floor(timeoutMs / LEAST_ATTEMPTS))} or raise the timeout`;
  });
}

function describeOverload(markets: number, neededPerSecond: number, capacityPerSecond: number): string {
  return `${markets} markets need ${neededPerSecond.toFixed(1)} renewals a second to fit ${LEAST_ATTEMPTS} attempts into every timeout, ${capacityPerSecond.toFixed(1)} can be carried, with some room left for retries: raise the timeouts, take fewer markets, or carry more by exchange.budgetShare, nonce: window or a shorter way to the exchange`;
}

/** Smallest value between `low` and `high` that fits, to one part in a million; `high` where none does. */
function smallestThatFits(low: number, high: number, fits: (value: number) => boolean): number {
  if (fits(low)) return low;
  let left = low;
  let right = high;
  for (let round = 0; round < 20; round += 1) {
    const middle = (left + right) / 2;
    if (fits(middle)) right = middle;
    else left = middle;
  }
  return right;
}

/** The time that an answer takes, as the promise assumes it before one was measured. */
export const ASSUMED_ANSWER_MS = 200;
/** Timers are counted in whole seconds of the exchange's clock: a second is lost to rounding. */
export const ROUNDING_MS = 1000;
/** No two attempts of a market follow each other faster, but for a new nonce after a stale one. */
export const SHORTEST_GAP_MS = 250;
/** `trip` sets the shortest timer that the exchange takes. */
export const TRIP_MS = 5000;

/** The bounds that the README promises, in milliseconds, for one market. */
export interface Bounds {
  /** Any stretch without a successful request shorter than this lapses nothing. */
  readonly survivesMs: number;
  /** After the bot's last evidence its orders are cancelled within this; null where nobody watches the bot. */
  readonly botDeathMs: number | null;
  /** The same where a daemon that starts anew has not heard the bot: after its start. The grace is given once more. */
  readonly unheardMs: number;
  /** After the daemon's last renewal its orders are cancelled within this. */
  readonly daemonDeathMs: number;
}

/**
 * W = T - 1 - P - d - g, H + l + T + 1 + s and l + T + 1 + s, with d = `answerMs`: the time that an answer takes. With
 * `onStale: trip` the second one is the same: an exchange that is away cannot be asked for a trip.
 */
export function boundsOf(
  settings: CoreSettings,
  timeoutMs: number,
  periodMs: number,
  answerMs: number = ASSUMED_ANSWER_MS,
): Bounds {
  const survivesMs = Math.max(0, timeoutMs - ROUNDING_MS - periodMs - answerMs - SHORTEST_GAP_MS);
  const daemonDeathMs = settings.requestLifetimeMs + timeoutMs + ROUNDING_MS + settings.cancellationDelayMs;
  const { mode, ttlMs, startupGraceMs } = settings.liveness;
  const botDeathMs = mode === 'none' ? null : ttlMs + daemonDeathMs;
  return { survivesMs, botDeathMs, unheardMs: startupGraceMs + daemonDeathMs, daemonDeathMs };
}

/**
 * The bounds as sentences with numbers: printed at start, in `check-config` and on the status page. Where less is granted
 * than asked for, less is survived; but the next timer may be as long as asked for.
 */
export function describePromise(
  settings: CoreSettings,
  market: MarketSettings,
  periodMs: number,
  answerMs: number = ASSUMED_ANSWER_MS,
  grantedMs: number = market.timeoutMs,
): string[] {
  const bounds = boundsOf(settings, market.timeoutMs, periodMs, answerMs);
  const { survivesMs } = boundsOf(settings, grantedMs, periodMs, answerMs);
  const what = market.types === null ? 'orders' : `${market.types.join(' and ')} orders`;
  return [
    `${market.market}: renewed every ${seconds(periodMs)}, timer of ${seconds(grantedMs)}.`,
    survivesMs > 0
      ? `An outage of the exchange shorter than ${seconds(survivesMs)} cancels nothing.`
      : `Its renewals may come too late: its ${what} MAY BE CANCELLED without any outage.`,
    bounds.botDeathMs === null
      ? `Nobody watches the bot (liveness mode none): if it dies, its ${what} stay for as long as this daemon runs.`
      : `If the bot dies, its ${what} are cancelled after at most ${seconds(bounds.botDeathMs)}; if this daemon starts anew after that, at most ${seconds(bounds.unheardMs)} after its start.`,
    `If this daemon, the host or the network dies, the ${what} are cancelled after at most ${seconds(bounds.daemonDeathMs)}.`,
  ];
}

/** The exchange's window may be longer than ours by this much: 200 ppm of 10 s. */
export const WINDOW_DRIFT_MS = 2;
/** Before an answer time was measured, a request counts in the budget for so much longer than a window. */
const UNMEASURED_ANSWER_MS = 500;
/** With rising nonces a request is planned to hold up the next one for this long at most. */
export const LONGEST_LANE_MS = 500;
/** Requests that go one after the other are planned to use this share of what the answer time allows. */
const SERIAL_SHARE = 0.8;

/** The part of a budget that is planned for. The rest is for retries: a fiftieth of a large budget, a tenth of a small one. */
function plannedOf(requests: number): number {
  return requests * (1 - clamp(5 / requests, 0.02, 0.1));
}

type Limits = Pick<CoreSettings, 'budget' | 'nonce' | 'connections'>;

/**
 * Renewals a second that are planned to be carried: what the budget allows while each request counts from its writing
 * until a window after its answer, and what the wire allows: with rising nonces one request at a time, else one for each
 * connection. `answerMs` null: not measured yet.
 */
export function carriedPerSecond(
  { budget: { requests, windowMs }, nonce, connections }: Limits,
  answerMs: number | null,
): number {
  const waitMs = answerMs ?? UNMEASURED_ANSWER_MS;
  const ofBudget = (plannedOf(requests) * 1000) / (windowMs + WINDOW_DRIFT_MS + waitMs);
  if (answerMs === null) return ofBudget;
  const lanes = nonce === 'window' ? connections : 1;
  const holdsMs = nonce === 'window' ? answerMs : Math.min(answerMs, LONGEST_LANE_MS);
  return Math.min(ofBudget, (SERIAL_SHARE * lanes * 1000) / Math.max(holdsMs, 0.1));
}

/** The token bucket: `burst` requests at once, and `perMs` after that. */
export interface Bucket {
  readonly burst: number;
  readonly perMs: number;
}

/**
 * Splits the budget: a quarter more a second than the periods need, and the rest as a burst, so that no burst keeps
 * renewals waiting for the window of the budget to pass.
 */
export function bucketOf(
  { budget: { requests, windowMs } }: Pick<CoreSettings, 'budget'>,
  neededPerSecond: number,
): Bucket {
  const mostPerMs = plannedOf(requests) / (windowMs + WINDOW_DRIFT_MS);
  const perMs = clamp((neededPerSecond * 1.25) / 1000, mostPerMs / 2, mostPerMs);
  return { burst: Math.max(1, requests - perMs * (windowMs + WINDOW_DRIFT_MS)), perMs };
}

/** `60 s`, `7.5 s`: a duration for a sentence. */
export function seconds(ms: number): string {
  return `${Number((ms / 1000).toFixed(3))} s`;
}
