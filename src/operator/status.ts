import type { Instant } from '../core/time.ts';
import { MARKET_STATES, type MarketPhase, type MarketSnapshot, type Snapshot } from '../core/view.ts';
import type { Clock, RecentEvent } from '../ports.ts';
import type { Cancellation } from './cancellations.ts';
import { urgencyOf } from './page-words.ts';
import { createBreather } from './share.ts';

/** The input of the status document. A market is read when its line is written. */
export interface StatusInput {
  readonly snapshot: Snapshot;
  readonly events: readonly RecentEvent[];
  readonly cancellations: readonly Cancellation[];
  readonly version: string;
  /** Unix milliseconds. */
  readonly startedAtWallMs: number;
  readonly now: Instant;
}

/** Which markets a document holds: at most `limit`, of those whose name, or whose bot's name, contains `find`. */
export interface Selection {
  readonly limit: number;
  readonly find?: string;
}

/**
 * `/api/v1/status`, version 1: fields may be added to it, none is removed or changes its meaning; docs/http.md says what
 * each means. Durations in seconds, moments in Unix seconds.
 */
export type StatusDocument = ReturnType<typeof describeAllButMarkets> & {
  readonly markets: readonly MarketStatus[];
};
export type MarketStatus = ReturnType<typeof describeMarket>;

/** What a stop would do with some of the markets; more than 20 of them are counted but not named. */
export interface StopOutcome {
  readonly does: string;
  readonly count: number;
  readonly markets: readonly string[];
}

/** Markets in one piece of the document. */
const BATCH_MARKETS = 50;
const NAMED_MARKETS = 20;

/** Milliseconds as seconds with at most three decimals. */
export function toSeconds<T extends number | null>(ms: T): T extends null ? null : number;
export function toSeconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms) / 1000;
}

function describeMarket(market: MarketSnapshot) {
  const { hold, wanted, guaranteedMs } = market;
  return {
    market: market.market,
    types: market.types,
    bot: market.bot,
    state: market.state,
    wanted,
    protected: wanted && (guaranteedMs ?? 0) > 0,
    hold: hold === null ? null : { why: hold.why, untilAt: toSeconds(hold.untilWallMs) },
    leaving: market.leaving,
    timeoutSeconds: toSeconds(market.timeoutMs),
    renewEverySeconds: toSeconds(market.periodMs),
    survivesSeconds: toSeconds(market.survivesMs),
    guaranteedSeconds: toSeconds(guaranteedMs),
    expiresAt: toSeconds(market.expiryWallMs),
    firesBy: toSeconds(market.firesByWallMs),
    serverCancellationTime: market.cancellationTime,
    lastAnswerSeconds: toSeconds(market.lastDurationMs),
    lastSlackRatio: market.lastSlackRatio,
    slackHistory: market.slackHistory.map((ratio) => Math.round(ratio * 1000) / 1000),
    renewals: market.renewals,
    failures: market.failures,
    failureStreak: market.failureStreak,
    lapses: market.lapses,
    lastProblem: market.lastProblem,
    retryAt: toSeconds(market.retryWallMs),
    onStop: market.onStop,
    promise: market.promise,
  };
}

/**
 * What all markets come to in a few figures, and those that are shown. Reads each market once: its state is derived at
 * every read, and a page asks every second.
 */
function tally({ snapshot, cancellations, now }: StatusInput, { limit, find = '' }: Selection) {
  const stops = new Map<string, { does: string; count: number; markets: string[] }>();
  const byState = Object.fromEntries(MARKET_STATES.map((state) => [state, 0])) as Record<MarketPhase, number>;
  const cancelled = new Set(cancellations.map(({ market }) => market));
  const sought = find.toLowerCase();
  const found: { readonly seen: MarketSnapshot; readonly urgency: number }[] = [];
  let [lapsed, protectedCount] = [0, 0];
  let nextExpiry: MarketSnapshot | null = null;
  const runningDown: MarketSnapshot[] = [];
  for (const seen of snapshot.markets) {
    const { market, state, lapses, onStop } = seen;
    byState[state] += 1;
    lapsed += lapses;
    if (seen.wanted && (seen.guaranteedMs ?? 0) > 0) {
      protectedCount += 1;
      if ((seen.guaranteedMs ?? 0) < (nextExpiry?.guaranteedMs ?? Number.POSITIVE_INFINITY))
        nextExpiry = seen;
    }
    if (!seen.wanted && state !== 'deleted' && (seen.firesByWallMs ?? 0) > now.wallMs) runningDown.push(seen);
    let stop = stops.get(onStop);
    if (stop === undefined) stops.set(onStop, (stop = { does: onStop, count: 0, markets: [] }));
    stop.count += 1;
    if (stop.markets.length < NAMED_MARKETS) stop.markets.push(market);
    if (sought !== '' && !`${market} ${seen.bot}`.toLowerCase().includes(sought)) continue;
    found.push({ seen, urgency: urgencyOf(state, cancelled.has(market)) });
  }
  if (found.length > limit) found.sort((one, other) => one.urgency - other.urgency);
  const shown = found.slice(0, limit).map(({ seen }) => seen);
  runningDown.sort((one, other) => (one.firesByWallMs ?? 0) - (other.firesByWallMs ?? 0));
  return {
    stops: [...stops.values()] satisfies StopOutcome[],
    byState,
    lapses: lapsed,
    protectedCount,
    nextExpiry: describeNextExpiry(nextExpiry),
    runningDown: describeRunningDown(runningDown),
    matching: found.length,
    /** In the order of the configuration where all fit; else the worst first. */
    shown,
  };
}

/** The protected market whose time is up first, also where it is not shown. */
function describeNextExpiry(seen: MarketSnapshot | null) {
  if (seen?.expiryWallMs == null) return null;
  return {
    market: seen.market,
    timeoutSeconds: toSeconds(seen.timeoutMs),
    expiresAt: toSeconds(seen.expiryWallMs),
  };
}

/** The markets whose timers nobody renews, those that fire first first. */
function describeRunningDown(markets: readonly MarketSnapshot[]) {
  const [first] = markets;
  const last = markets.at(-1);
  if (first?.firesByWallMs == null || last?.firesByWallMs == null) return null;
  return {
    count: markets.length,
    market: first.market,
    firstBy: toSeconds(first.firesByWallMs),
    lastBy: toSeconds(last.firesByWallMs),
  };
}

function describeAllButMarkets(input: StatusInput, tallied: ReturnType<typeof tally>, { limit }: Selection) {
  const { snapshot, events, cancellations } = input;
  return {
    schemaVersion: 1 as const,
    version: input.version,
    startedAt: toSeconds(input.startedAtWallMs),
    now: toSeconds(input.now.wallMs),
    phase: snapshot.phase,
    ready: snapshot.ready,
    notReady: snapshot.notReady,
    nothingGuarded: snapshot.nothingGuarded,
    live: snapshot.live,
    authorised: snapshot.authorised,
    shutdownPolicy: snapshot.shutdownPolicy,
    whatAStopWouldDo: tallied.stops,
    capacityPerSecond: snapshot.capacityPerSecond,
    cadenceFactor: snapshot.cadenceFactor,
    marketCount: snapshot.markets.length,
    matchingCount: tallied.matching,
    protectedCount: tallied.protectedCount,
    nextExpiry: tallied.nextExpiry,
    runningDown: tallied.runningDown,
    marketsByState: tallied.byState,
    lapseCount: tallied.lapses,
    cancellationCount: cancellations.length,
    cancellations: cancellations.slice(0, limit).map(({ market, certainty, why, byWallMs, count }) => {
      return { market, certainty, why, by: toSeconds(byWallMs), count };
    }),
    bases: snapshot.bases.map(({ url, up, pingMs, outage, lastProblem }) => {
      return { url, up, pingSeconds: toSeconds(pingMs), outage, lastProblem };
    }),
    bots: snapshot.bots.map(({ bot, mode, state, evidenceAgeMs, ttlMs }) => {
      const evidenceAgeSeconds = toSeconds(evidenceAgeMs);
      return { bot, mode, state, evidenceAgeSeconds, ttlSeconds: toSeconds(ttlMs) };
    }),
    events: events.map(({ atWallMs, level, event, market, text }) => {
      return { at: toSeconds(atWallMs), level, event, market, text };
    }),
  };
}

/** The status document. */
export function describeStatus(input: StatusInput, selection: Selection): StatusDocument {
  const tallied = tally(input, selection);
  return { ...describeAllButMarkets(input, tallied, selection), markets: tallied.shown.map(describeMarket) };
}

/** The status document as JSON in pieces; the event loop is given back between them. */
export async function renderStatus(
  input: StatusInput,
  selection: Selection,
  clock: Clock,
): Promise<readonly string[]> {
  const tallied = tally(input, selection);
  const head = JSON.stringify(describeAllButMarkets(input, tallied, selection));
  const chunks = [`${head.slice(0, -1)},"markets":[`];
  const breathe = createBreather(clock);
  const { shown } = tallied;
  for (let first = 0; first < shown.length; first += BATCH_MARKETS) {
    const batch = shown
      .slice(first, first + BATCH_MARKETS)
      .map((market) => JSON.stringify(describeMarket(market)));
    chunks.push(`${first === 0 ? '' : ','}${batch.join(',')}`);
    await breathe();
  }
  chunks.push(']}\n');
  return chunks;
}
