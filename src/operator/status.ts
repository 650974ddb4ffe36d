import { MARKET_STATES, type MarketPhase, type MarketSnapshot, type Snapshot } from '../core/view.ts';
import type { Clock, RecentEvent } from '../ports.ts';
import { createBreather } from '../util/pace.ts';
import type { Cancellation } from './cancellations.ts';
import { runsDown, urgencyOf } from './page-words.ts';

/** What the status document is made of. */
export interface StatusSources {
  readonly clock: Clock;
  readonly snapshot: () => Snapshot;
  readonly recentEvents: () => readonly RecentEvent[];
  readonly cancellations: () => readonly Cancellation[];
  readonly version: string;
  readonly startedAtWallMs: number;
}

/** `/api/v1/status`, see docs/http.md: fields may be added, none is removed or changes. Seconds, and Unix seconds. */
export type StatusDocument = ReturnType<typeof describeStatus>;
export type MarketStatus = ReturnType<typeof describeMarket>;

const BATCH_MARKETS = 50;
/** Markets with the same fate in a stop: more are counted and not named. */
const NAMED_MARKETS = 20;

export function toSeconds<T extends number | null>(ms: T) {
  return (ms === null ? null : Math.round(ms) / 1000) as T extends null ? null : number;
}

function describeMarket(seen: MarketSnapshot) {
  const { market, types, bot, state, timer, wanted, leaving, hold, guaranteedMs, lastSlackRatio } = seen;
  const { renewals, failures, failureStreak, lapses, lastProblem, onStop, promise } = seen;
  const figures = { lastSlackRatio, renewals, failures, failureStreak, lapses, lastProblem };
  const described = { market, types, bot, state, timer, wanted, leaving, ...figures, onStop, promise };
  return {
    ...described,
    protected: wanted && (guaranteedMs ?? 0) > 0,
    hold: hold === null ? null : { why: hold.why, untilAt: toSeconds(hold.untilWallMs) },
    timeoutSeconds: toSeconds(seen.timeoutMs),
    renewEverySeconds: toSeconds(seen.periodMs),
    survivesSeconds: toSeconds(seen.survivesMs),
    guaranteedSeconds: toSeconds(guaranteedMs),
    expiresAt: toSeconds(seen.expiryWallMs),
    firesBy: toSeconds(seen.firesByWallMs),
    serverCancellationTime: seen.cancellationTime,
    lastAnswerSeconds: toSeconds(seen.lastDurationMs),
    slackHistory: seen.slackHistory.map((ratio) => Math.round(ratio * 1000) / 1000),
    retryAt: toSeconds(seen.retryWallMs),
  };
}

/** All markets in a few figures. */
function figuresOf(markets: Snapshot['markets'], now: number) {
  const sureMs = ({ wanted, guaranteedMs }: MarketSnapshot) => (wanted ? (guaranteedMs ?? 0) : 0);
  const armed = markets.filter((market) => sureMs(market) > 0);
  const [next] = armed.toSorted((one, other) => sureMs(one) - sureMs(other));
  const falling = markets.flatMap(({ market, state, timer, wanted, firesByWallMs }) => {
    const firesBy = toSeconds(firesByWallMs);
    const falls = firesBy !== null && runsDown({ wanted, state, firesBy }, now);
    return falls ? { market, timer, firstBy: firesBy } : [];
  });
  const [first] = falling.sort((one, other) => one.firstBy - other.firstBy);
  const lastBy = falling.at(-1)?.firstBy ?? 0;
  const countOf = (known: string) => falling.filter(({ timer }) => timer === known).length;
  return {
    whatAStopWouldDo: [...Map.groupBy(markets, ({ onStop }) => onStop)].map(([does, some]) => {
      const named = some.slice(0, NAMED_MARKETS).map(({ market }) => market);
      return { does, count: some.length, markets: named };
    }),
    protectedCount: armed.length,
    /** The protected market whose time is up first, also where it is not shown. */
    nextExpiry: next === undefined ? null : describeExpiry(next),
    /** Of the timers that nobody renews: the first and the last to fire. */
    runningDown:
      first === undefined
        ? null
        : {
            count: falling.length,
            market: first.market,
            firstBy: first.firstBy,
            lastBy,
            /** Of them those that no answer told of, and those that are being deleted. */
            unconfirmedCount: countOf('unconfirmed'),
            deletingCount: countOf('deleting'),
          },
    marketsByState: Object.fromEntries(
      MARKET_STATES.map((state) => [state, markets.filter((market) => market.state === state).length]),
    ) as Record<MarketPhase, number>,
    lapseCount: markets.reduce((sum, { lapses }) => sum + lapses, 0),
  };
}

function describeExpiry({ market, timeoutMs, expiryWallMs }: MarketSnapshot) {
  return { market, timeoutSeconds: toSeconds(timeoutMs), expiresAt: toSeconds(expiryWallMs ?? 0) };
}

/**
 * The document without its markets, and those that it shows: at most `limit`, of those whose name, or whose bot's name,
 * contains `find`. In the order of the configuration where all fit; else the worst first.
 */
function describeDaemon(sources: StatusSources, limit: number, find: string) {
  const { markets, bases, bots, stopEndsWallMs, ...state } = sources.snapshot();
  const cancellations = sources.cancellations();
  const now = toSeconds(sources.clock.now().wallMs);
  const cancelled = new Set(cancellations.map(({ market }) => market));
  const sought = find.toLowerCase();
  const found = markets.filter(({ market, bot }) => `${market} ${bot}`.toLowerCase().includes(sought));
  const byUrgency = Map.groupBy(found, ({ state, market }) => urgencyOf(state, cancelled.has(market)));
  const worstFirst = [...byUrgency].toSorted(([one], [other]) => one - other).flatMap(([, some]) => some);
  const head = {
    schemaVersion: 1 as const,
    version: sources.version,
    startedAt: toSeconds(sources.startedAtWallMs),
    now,
    ...state,
    stopEndsAt: toSeconds(stopEndsWallMs),
    marketCount: markets.length,
    matchingCount: found.length,
    ...figuresOf(markets, now),
    cancellationCount: cancelled.size,
    cancellations: cancellations.slice(0, limit).map(({ byWallMs, ...one }) => {
      return { ...one, by: toSeconds(byWallMs) };
    }),
    bases: bases.map(({ pingMs, ...base }) => ({ ...base, pingSeconds: toSeconds(pingMs) })),
    bots: bots.map(({ evidenceAgeMs, ttlMs, graceEndsWallMs, ...bot }) => {
      const seconds = { evidenceAgeSeconds: toSeconds(evidenceAgeMs), ttlSeconds: toSeconds(ttlMs) };
      return { ...bot, ...seconds, graceEndsAt: toSeconds(graceEndsWallMs) };
    }),
    events: sources.recentEvents().map(({ atWallMs, ...event }) => ({ at: toSeconds(atWallMs), ...event })),
  };
  return { head, shown: (found.length > limit ? worstFirst : found).slice(0, limit) };
}

export function describeStatus(sources: StatusSources, limit: number, find = '') {
  const { head, shown } = describeDaemon(sources, limit, find);
  return { ...head, markets: shown.map(describeMarket) };
}

/** The status document as JSON, which is made in pieces: the event loop is given back between them. */
export async function renderStatus(sources: StatusSources, limit: number, find = ''): Promise<Buffer> {
  const { head, shown } = describeDaemon(sources, limit, find);
  const pieces = [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"markets":[`)];
  const breathe = createBreather(sources.clock);
  for (let first = 0; first < shown.length; first += BATCH_MARKETS) {
    const batch = shown.slice(first, first + BATCH_MARKETS).map(describeMarket);
    pieces.push(Buffer.from(`${first === 0 ? '' : ','}${JSON.stringify(batch).slice(1, -1)}`));
    await breathe();
  }
  return Buffer.concat([...pieces, Buffer.from(']}\n')]);
}
