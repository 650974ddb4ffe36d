import type { Instant } from '../core/time.ts';
import { MARKET_STATES, type MarketPhase, type MarketSnapshot, type Snapshot } from '../core/view.ts';
import type { Clock, RecentEvent } from '../ports.ts';
import { createBreather } from '../util/pace.ts';
import type { Cancellation } from './cancellations.ts';
import { runsDown, urgencyOf } from './page-words.ts';

/** The input of the status document. A market is read when its line is written. */
export interface StatusInput {
  readonly snapshot: Snapshot;
  readonly events: readonly RecentEvent[];
  readonly cancellations: readonly Cancellation[];
  readonly version: string;
  readonly startedAtWallMs: number;
  readonly now: Instant;
  /** At most so many markets are shown, of those whose name, or whose bot's name, contains `find`. */
  readonly limit: number;
  readonly find?: string;
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
  const { market, types, bot, state, wanted, leaving, hold, guaranteedMs, lastSlackRatio } = seen;
  const { renewals, failures, failureStreak, lapses, lastProblem, onStop, promise } = seen;
  const figures = { lastSlackRatio, renewals, failures, failureStreak, lapses, lastProblem };
  const described = { market, types, bot, state, wanted, leaving, ...figures, onStop, promise };
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

/** All markets in a few figures, and those that are shown. Each is read once: its state is derived at every read. */
function tally({ snapshot, cancellations, now, limit, find = '' }: StatusInput) {
  const cancelled = new Set(cancellations.map(({ market }) => market));
  const rows = snapshot.markets.map((seen) => {
    const { market, bot, state, onStop, wanted, lapses, guaranteedMs, firesByWallMs } = seen;
    const firesBy = toSeconds(firesByWallMs);
    const fallsBy = runsDown({ wanted, state, firesBy }, toSeconds(now.wallMs)) ? firesBy : null;
    const urgency = urgencyOf(state, cancelled.has(market));
    const sureMs = wanted ? (guaranteedMs ?? 0) : 0;
    return { seen, market, bot, state, urgency, onStop, lapses, sureMs, fallsBy };
  });
  const armed = rows.filter(({ sureMs }) => sureMs > 0);
  const [next] = armed.toSorted((one, other) => one.sureMs - other.sureMs);
  const falling = rows.flatMap(({ market, fallsBy }) =>
    fallsBy === null ? [] : { market, firstBy: fallsBy },
  );
  const [first] = falling.sort((one, other) => one.firstBy - other.firstBy);
  const lastBy = falling.at(-1)?.firstBy ?? 0;
  const runningDown = first === undefined ? null : { count: falling.length, ...first, lastBy };
  const sought = find.toLowerCase();
  const found = rows.filter(({ market, bot }) => `${market} ${bot}`.toLowerCase().includes(sought));
  // In the order of the configuration where all fit; else the worst first.
  if (found.length > limit) found.sort((one, other) => one.urgency - other.urgency);
  return {
    shown: found.slice(0, limit).map(({ seen }) => seen),
    figures: {
      whatAStopWouldDo: [...Map.groupBy(rows, ({ onStop }) => onStop)].map(([does, some]) => {
        const markets = some.slice(0, NAMED_MARKETS).map(({ market }) => market);
        return { does, count: some.length, markets };
      }),
      matchingCount: found.length,
      protectedCount: armed.length,
      /** The protected market whose time is up first, also where it is not shown. */
      nextExpiry: next === undefined ? null : describeExpiry(next.seen),
      /** Of the timers that nobody renews: the first and the last to fire. */
      runningDown,
      marketsByState: Object.fromEntries(
        MARKET_STATES.map((state) => [state, rows.filter((row) => row.state === state).length]),
      ) as Record<MarketPhase, number>,
      lapseCount: rows.reduce((sum, { lapses }) => sum + lapses, 0),
    },
  };
}

function describeExpiry({ market, timeoutMs, expiryWallMs }: MarketSnapshot) {
  return { market, timeoutSeconds: toSeconds(timeoutMs), expiresAt: toSeconds(expiryWallMs ?? 0) };
}

/** The document without its markets, and those that it shows. */
function describeDaemon(input: StatusInput) {
  const { snapshot, events, cancellations } = input;
  const { markets, bases, bots, ...state } = snapshot;
  const { shown, figures } = tally(input);
  const head = {
    schemaVersion: 1 as const,
    version: input.version,
    startedAt: toSeconds(input.startedAtWallMs),
    now: toSeconds(input.now.wallMs),
    ...state,
    marketCount: markets.length,
    ...figures,
    cancellationCount: cancellations.length,
    cancellations: cancellations.slice(0, input.limit).map(({ byWallMs, ...one }) => {
      return { ...one, by: toSeconds(byWallMs) };
    }),
    bases: bases.map(({ pingMs, ...base }) => ({ ...base, pingSeconds: toSeconds(pingMs) })),
    bots: bots.map(({ evidenceAgeMs, ttlMs, ...bot }) => {
      return { ...bot, evidenceAgeSeconds: toSeconds(evidenceAgeMs), ttlSeconds: toSeconds(ttlMs) };
    }),
    events: events.map(({ atWallMs, ...event }) => ({ at: toSeconds(atWallMs), ...event })),
  };
  return { head, shown };
}

export function describeStatus(input: StatusInput) {
  const { head, shown } = describeDaemon(input);
  return { ...head, markets: shown.map(describeMarket) };
}

/** The status document as JSON, which is made in pieces: the event loop is given back between them. */
export async function renderStatus(input: StatusInput, clock: Clock): Promise<Buffer> {
  const { head, shown } = describeDaemon(input);
  const pieces = [Buffer.from(`${JSON.stringify(head).slice(0, -1)},"markets":[`)];
  const breathe = createBreather(clock);
  for (let first = 0; first < shown.length; first += BATCH_MARKETS) {
    const batch = shown.slice(first, first + BATCH_MARKETS).map(describeMarket);
    pieces.push(Buffer.from(`${first === 0 ? '' : ','}${JSON.stringify(batch).slice(1, -1)}`));
    await breathe();
  }
  return Buffer.concat([...pieces, Buffer.from(']}\n')]);
}
