import type { Hold } from '../core/notice.ts';
import type { BaseSnapshot, BotSnapshot, MarketPhase, MarketSnapshot, Snapshot } from '../core/snapshot.ts';
import { MARKET_STATES } from '../core/snapshot.ts';
import type { Instant } from '../core/time.ts';
import type { Clock } from '../ports.ts';
import { createBreather } from './share.ts';

/** Something that happened, as the listener is given it. */
export interface RecentEvent {
  /** Unix milliseconds. */
  readonly atWallMs: number;
  readonly level: 'error' | 'warn' | 'info' | 'debug';
  readonly event: string;
  readonly market: string | null;
  readonly text: string;
}

/** What the status document is made of: what a market says is as it stands when its line is written. */
export interface StatusInput {
  readonly snapshot: Snapshot;
  readonly events: readonly RecentEvent[];
  readonly version: string;
  /** Unix milliseconds. */
  readonly startedAtWallMs: number;
  readonly now: Instant;
}

/** One market in `/api/v1/status`. Durations in seconds, moments in Unix seconds. */
export interface MarketStatus {
  readonly market: string;
  /** Null where the timer covers all order types. */
  readonly types: readonly string[] | null;
  readonly bot: string;
  readonly state: MarketPhase;
  readonly wanted: boolean;
  /** Why it is left alone on purpose, and until when; `untilAt` null: until an operator arms it. */
  readonly hold: { readonly why: Hold; readonly untilAt: number | null } | null;
  /** No longer configured; shown until its timer is gone. */
  readonly leaving: boolean;
  /** Another shard's, and guarded here as well for so much longer; null where it is this one's alone. */
  readonly handedOverInSeconds: number | null;
  readonly timeoutSeconds: number;
  readonly renewEverySeconds: number;
  /** Longest outage of the exchange that cancels nothing. */
  readonly survivesSeconds: number;
  /** Surely armed for this long; 0 or less where that ran out; null where no timer was ever confirmed. */
  readonly guaranteedSeconds: number | null;
  readonly expiresAt: number | null;
  /** Latest moment at which a timer that may exist fires. */
  readonly firesBy: number | null;
  readonly serverCancellationTime: number | null;
  readonly lastAnswerSeconds: number | null;
  readonly lastSlackRatio: number | null;
  /** Oldest first, at most 60. */
  readonly slackHistory: readonly number[];
  readonly renewals: number;
  readonly failures: number;
  readonly failureStreak: number;
  readonly lapses: number;
  readonly lastProblem: string | null;
  readonly onStop: string;
  readonly promise: readonly string[];
}

/** What a stop would do with some of the markets; more than 20 of them are counted but not named. */
export interface StopOutcome {
  readonly does: string;
  readonly count: number;
  readonly markets: readonly string[];
}

/** `/api/v1/status`, version 1: fields may be added to it, none is removed or changes its meaning. */
export interface StatusDocument {
  readonly schemaVersion: 1;
  readonly version: string;
  readonly startedAt: number;
  readonly now: number;
  readonly phase: Snapshot['phase'];
  readonly ready: boolean;
  readonly notReady: readonly string[];
  /** Why no market is wanted armed now, in a sentence; null where one is. */
  readonly nothingGuarded: string | null;
  readonly live: boolean;
  readonly authorised: boolean;
  readonly shutdownPolicy: Snapshot['shutdownPolicy'];
  readonly whatAStopWouldDo: readonly StopOutcome[];
  readonly capacityPerSecond: number;
  readonly cadenceFactor: number;
  readonly marketCount: number;
  readonly marketsByState: Readonly<Record<MarketPhase, number>>;
  /** Lapses of all markets since the start, certain and possible. */
  readonly lapseCount: number;
  readonly bases: readonly {
    readonly url: string;
    readonly up: boolean | null;
    readonly pingSeconds: number | null;
    readonly outage: boolean;
    readonly lastProblem: string | null;
  }[];
  readonly bots: readonly {
    readonly bot: string;
    readonly mode: string;
    readonly state: BotSnapshot['state'];
    readonly evidenceAgeSeconds: number | null;
    readonly ttlSeconds: number | null;
  }[];
  readonly events: readonly {
    readonly at: number;
    readonly level: RecentEvent['level'];
    readonly event: string;
    readonly market: string | null;
    readonly text: string;
  }[];
  readonly markets: readonly MarketStatus[];
}

/** Markets in one piece of the document. */
const BATCH_MARKETS = 50;
const NAMED_MARKETS = 20;
/** The worse the state, the earlier its markets come where not all are shown. */
const WORST: readonly MarketPhase[] = [
  'expired',
  'rejected',
  'retrying',
  'arming',
  'suspended',
  'paused',
  'disarmed',
];
const URGENCY: ReadonlyMap<string, number> = new Map(WORST.map((state, place) => [state, place]));

/** The smaller, the worse. What is well, or a state of another version, comes last. */
export function urgencyOf(state: string): number {
  return URGENCY.get(state) ?? URGENCY.size;
}

/** Milliseconds as seconds with at most three decimals. */
function toSeconds(ms: number): number {
  return Math.round(ms) / 1000;
}

function toSecondsOrNull(ms: number | null): number | null {
  return ms === null ? null : toSeconds(ms);
}

function describeMarket(market: MarketSnapshot): MarketStatus {
  return {
    market: market.market,
    types: market.types,
    bot: market.bot,
    state: market.state,
    wanted: market.wanted,
    hold: describeHold(market.hold),
    leaving: market.leaving,
    handedOverInSeconds: toSecondsOrNull(market.handedOverInMs),
    timeoutSeconds: toSeconds(market.timeoutMs),
    renewEverySeconds: toSeconds(market.periodMs),
    survivesSeconds: toSeconds(market.survivesMs),
    guaranteedSeconds: toSecondsOrNull(market.guaranteedMs),
    expiresAt: toSecondsOrNull(market.expiryWallMs),
    firesBy: toSecondsOrNull(market.firesByWallMs),
    serverCancellationTime: market.cancellationTime,
    lastAnswerSeconds: toSecondsOrNull(market.lastDurationMs),
    lastSlackRatio: market.lastSlackRatio,
    slackHistory: market.slackHistory.map((ratio) => Math.round(ratio * 1000) / 1000),
    renewals: market.renewals,
    failures: market.failures,
    failureStreak: market.failureStreak,
    lapses: market.lapses,
    lastProblem: market.lastProblem,
    onStop: market.onStop,
    promise: market.promise,
  };
}

function describeHold(hold: MarketSnapshot['hold']): MarketStatus['hold'] {
  return hold === null ? null : { why: hold.why, untilAt: toSecondsOrNull(hold.untilWallMs) };
}

function describeBase({ url, up, pingMs, outage, lastProblem }: BaseSnapshot) {
  return { url, up, pingSeconds: toSecondsOrNull(pingMs), outage, lastProblem };
}

function describeBot({ bot, mode, state, evidenceAgeMs, ttlMs }: BotSnapshot) {
  const evidenceAgeSeconds = toSecondsOrNull(evidenceAgeMs);
  return { bot, mode, state, evidenceAgeSeconds, ttlSeconds: toSecondsOrNull(ttlMs) };
}

/** What of all markets comes to a few figures, and those that are shown. */
interface Tally {
  readonly stops: readonly StopOutcome[];
  readonly byState: Readonly<Record<MarketPhase, number>>;
  readonly lapses: number;
  /** In the order of the configuration where all fit; else the worst states first. */
  readonly shown: readonly MarketSnapshot[];
}

/** Looks at each market once: a state is worked out anew whenever it is asked for, and a page asks every second. */
function tally(markets: readonly MarketSnapshot[], limit: number): Tally {
  const stops = new Map<string, { does: string; count: number; markets: string[] }>();
  const byState = Object.fromEntries(MARKET_STATES.map((state) => [state, 0])) as Record<MarketPhase, number>;
  const all = markets.length <= limit;
  const ranks = Array.from({ length: 2 * (URGENCY.size + 1) }, (): MarketSnapshot[] => []);
  let lapsed = 0;
  for (const market of markets) {
    const { state, lapses, onStop } = market;
    byState[state] += 1;
    lapsed += lapses;
    let stop = stops.get(onStop);
    if (stop === undefined) {
      stop = { does: onStop, count: 0, markets: [] };
      stops.set(onStop, stop);
    }
    stop.count += 1;
    if (stop.markets.length < NAMED_MARKETS) stop.markets.push(market.market);
    if (all) continue;
    const rank = ranks[urgencyOf(state) * 2 + (lapses > 0 ? 0 : 1)];
    if (rank !== undefined && rank.length < limit) rank.push(market);
  }
  const shown = all ? markets : ranks.flat().slice(0, limit);
  return { stops: [...stops.values()], byState, lapses: lapsed, shown };
}

function describeAllButMarkets(
  input: StatusInput,
  { stops, byState, lapses }: Tally,
): Omit<StatusDocument, 'markets'> {
  const { snapshot, events } = input;
  return {
    schemaVersion: 1,
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
    whatAStopWouldDo: stops,
    capacityPerSecond: snapshot.capacityPerSecond,
    cadenceFactor: snapshot.cadenceFactor,
    marketCount: snapshot.markets.length,
    marketsByState: byState,
    lapseCount: lapses,
    bases: snapshot.bases.map(describeBase),
    bots: snapshot.bots.map(describeBot),
    events: events.map(({ atWallMs, level, event, market, text }) => {
      return { at: toSeconds(atWallMs), level, event, market, text };
    }),
  };
}

/** The status document with at most `limit` markets. */
export function describeStatus(input: StatusInput, limit: number): StatusDocument {
  const tallied = tally(input.snapshot.markets, limit);
  return { ...describeAllButMarkets(input, tallied), markets: tallied.shown.map(describeMarket) };
}

/** The status document as JSON in pieces; the event loop is given back between them. */
export async function renderStatus(
  input: StatusInput,
  limit: number,
  clock: Clock,
): Promise<readonly string[]> {
  const tallied = tally(input.snapshot.markets, limit);
  const head = JSON.stringify(describeAllButMarkets(input, tallied));
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
