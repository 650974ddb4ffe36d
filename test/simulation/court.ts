import type { BotWord, CoreSettings, Purpose } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { CoreView } from '../../src/core/view.ts';
import type { Keeper } from '../../src/keeper.ts';
import type { ExchangeRequest } from '../../src/simulator/state.ts';
import { type Plan, type PlannedMarket, REQUEST_LIFETIME_MS } from './plan.ts';
import type { HostClock } from './virtual-clock.ts';

/** One request on the simulated wire, as faults and judges see it. */
export interface Sent {
  readonly daemon: number;
  readonly life: number;
  /** Index into the base addresses. */
  readonly base: number;
  /** Null for a ping. */
  readonly market: string | null;
  /** What it asks for; null for a ping. */
  readonly order: { readonly nonce: string; readonly timeoutSeconds: number | null } | null;
  readonly request: ExchangeRequest;
  /** Counts the requests of one life of a daemon in the order of signing. */
  readonly number: number;
  /** Counts those of its market, or its pings: what draws depend on. */
  readonly nth: number;
  /** It was to leave over a connection of its own. */
  readonly fresh: boolean;
}

/** How long a beat counts as evidence that its bot lives. */
export const TTL_MS = 15_000;
/** For this long after its start a daemon renews without having heard of a bot. */
export const GRACE_MS = 20_000;
/** A stop may take this long. */
export const BUDGET_MS = 8000;

/** The configured markets as one of the daemons sees them. */
export interface Shared {
  readonly own: readonly PlannedMarket[];
  /** Those of other daemons. */
  readonly elsewhere: readonly PlannedMarket[];
}

/** One life of one simulated daemon; a restart begins another. */
export interface Incarnation {
  readonly daemon: number;
  readonly life: number;
  readonly startedMs: number;
  readonly clock: HostClock;
  /** What is told to it, and what it shows to operators. */
  readonly keeper: Omit<Keeper, 'state'>;
  /** Bots that it names. */
  bots: ReadonlySet<number>;
  /** What it believes now. */
  readonly view: () => CoreView;
  /** The settings of this daemon with these markets. */
  readonly configure: (markets: Shared) => CoreSettings;
  /** True moment of the SIGTERM; null before it. */
  stoppingMs: number | null;
}

export function nameOf({ daemon, life }: Incarnation): string {
  return `daemon ${daemon} (life ${life})`;
}

/** What is true of one market's timer at the exchange, as only the simulation can know it. True milliseconds. */
export interface Truth {
  readonly market: string;
  /** As it is configured now, the longest that it ever was, and since when it is what it is. */
  timeoutMs: number;
  readonly renewEveryMs: number | null;
  longestMs: number;
  changedMs: number;
  readonly bot: number;
  /** Whose renewal made the timer that is armed now; null for somebody else's, or where none is armed. */
  owner: Incarnation | null;
  /** When the armed timer fires; null where none is armed. */
  firesMs: number | null;
  /** cancellationTime of every timer that fired, Unix seconds. */
  readonly fired: number[];
  /** When the last one did, and when the first timer after it was made. */
  lastFiredMs: number;
  remadeMs: number;
  /** The exchange lied, forgot or was changed by others: until the end of this no belief about it can be sound. */
  brokenAtMs: number;
  brokenUntilMs: number;
}

/** The truth of every market, in the order of the plan. */
export function createTruths({ markets }: Plan): readonly Truth[] {
  return markets.map(({ market, timeoutSeconds, bot, renewEverySeconds }) => ({
    market,
    renewEveryMs: renewEverySeconds === undefined ? null : renewEverySeconds * 1000,
    timeoutMs: timeoutSeconds * 1000,
    longestMs: timeoutSeconds * 1000,
    changedMs: Number.NEGATIVE_INFINITY,
    bot,
    owner: null,
    firesMs: null,
    fired: [],
    lastFiredMs: Number.NEGATIVE_INFINITY,
    remadeMs: Number.NEGATIVE_INFINITY,
    brokenAtMs: Number.NEGATIVE_INFINITY,
    brokenUntilMs: 0,
  }));
}

/** The market is configured with another timeout from now on. */
export function changeTimeout(truth: Truth, timeoutMs: number, nowMs: number): void {
  truth.timeoutMs = timeoutMs;
  truth.longestMs = Math.max(truth.longestMs, timeoutMs);
  truth.changedMs = nowMs;
}

export function breakTruth(truth: Truth, nowMs: number): void {
  truth.brokenAtMs = nowMs;
  truth.brokenUntilMs = nowMs + 2 * truth.longestMs + REQUEST_LIFETIME_MS;
}

/** What is noted for a key, made where it is first asked for. */
export function perKey<Key, Note>(make: (key: Key) => Note): (key: Key) => Note {
  const notes = new Map<Key, Note>();
  return (key) => {
    const known = notes.get(key);
    if (known !== undefined) return known;
    const made = make(key);
    notes.set(key, made);
    return made;
  };
}

/** What is noted for each market of each life of a daemon. */
export function perMarket<Note>(make: (by: Incarnation) => Note): (by: Incarnation, market: string) => Note {
  const ofLife = perKey((by: Incarnation) => perKey((_market: string) => make(by)));
  return (by, market) => ofLife(by)(market);
}

/** Bots that live say so every 3 s, and are asked every 4 s. */
const STEADY_MS = 6000;

/** What a bot told one daemon, and what follows from it. */
interface EvidencePage {
  /** Until when it allows the daemon to renew; `Infinity` where nobody watches the bots. */
  untilMs: number;
  /** Since when it has come without a break. */
  sinceMs: number;
  /** Until when deletes for the bot's goodbye may arrive; `Infinity` while it holds. */
  goodbyeUntilMs: number;
  lastWord: BotWord;
  saidMs: number;
  /** It was dead when a reload took its last market: it is not met anew when one comes back. */
  staysDead: boolean;
}

/** What bots told each daemon. True milliseconds. */
export function createEvidenceBook(bots: number, watched: boolean, nowMs: () => number) {
  const all: EvidencePage[][] = [];
  const pagesOf = perKey(({ startedMs }: Incarnation) => {
    const untilMs = watched ? startedMs + GRACE_MS : Number.POSITIVE_INFINITY;
    const pages = Array.from({ length: bots }, (): EvidencePage => {
      const said = { lastWord: 'beat', saidMs: startedMs, staysDead: false } as const;
      return { untilMs, sinceMs: startedMs, goodbyeUntilMs: Number.NEGATIVE_INFINITY, ...said };
    });
    all.push(pages);
    return pages;
  });
  function pageOf(by: Incarnation, bot: number): EvidencePage {
    const page = pagesOf(by)[bot];
    if (page === undefined) throw new Error(`there is no bot ${bot}`);
    return page;
  }

  return {
    begin: (by: Incarnation) => void pagesOf(by),
    of: (by: Incarnation, bot: number): Readonly<EvidencePage> => pageOf(by, bot),
    /** A daemon that does not name a bot any more does not hear it. */
    dismiss: (by: Incarnation, bot: number): void => {
      const page = pageOf(by, bot);
      page.staysDead = page.untilMs < nowMs() && page.goodbyeUntilMs !== Number.POSITIVE_INFINITY;
    },
    /** The daemon hears of a bot for the first time, or of one that it has forgotten: its start-up grace begins. */
    introduce: (by: Incarnation, bot: number): void => {
      const page = pageOf(by, bot);
      if (page.staysDead) return;
      page.goodbyeUntilMs = until(false, page.goodbyeUntilMs, nowMs());
      if (watched) Object.assign(page, { untilMs: nowMs() + GRACE_MS, sinceMs: nowMs() });
    },
    /** True where the word before holds no more: the first beat after another word, or a failure. */
    hear(by: Incarnation, bot: number, says: BotWord, saidMs: number): boolean {
      const page = pageOf(by, bot);
      // A failure after a goodbye trips what a delete of unknown outcome may have left.
      const changed = says !== page.lastWord && says !== 'goodbye';
      // What was said before already is no new end of its evidence.
      const endedMs = says === page.lastWord ? Math.min(page.untilMs, nowMs()) : nowMs();
      page.lastWord = says;
      const missing = nowMs() - page.saidMs > STEADY_MS;
      if (page.untilMs < nowMs() || missing || says !== 'beat') page.sinceMs = nowMs();
      page.saidMs = saidMs;
      page.untilMs = says === 'beat' ? saidMs + TTL_MS : endedMs;
      if (says === 'goodbye') page.goodbyeUntilMs = Number.POSITIVE_INFINITY;
      if (says === 'fail') page.goodbyeUntilMs = until(false, page.goodbyeUntilMs, nowMs());
      return changed;
    },
    /** Until when the evidence of whichever daemon, dead or alive, allows the longest. */
    allowedAnyoneUntilMs: (bot: number) => Math.max(0, ...all.map((pages) => pages[bot]?.untilMs ?? 0)),
    /** Does the bot give evidence, steadily, as far as can be told now? */
    isSteady: (by: Incarnation, bot: number) => !watched || nowMs() - pageOf(by, bot).saidMs <= STEADY_MS,
    /** The daemon heard a beat, which may have been sent long ago: the goodbye before it is over. */
    takeBackGoodbye: (by: Incarnation, bot: number): void => {
      const page = pageOf(by, bot);
      page.goodbyeUntilMs = until(false, page.goodbyeUntilMs, nowMs());
    },
    saidGoodbye: (by: Incarnation, bot: number) =>
      pageOf(by, bot).goodbyeUntilMs === Number.POSITIVE_INFINITY,
  };
}

/** Until when what is `asked` for may arrive: for as long as that is so, and for as long as a request travels after it. */
function until(asked: boolean, beforeMs: number, nowMs: number): number {
  if (asked) return Number.POSITIVE_INFINITY;
  return beforeMs === Number.POSITIVE_INFINITY ? nowMs + REQUEST_LIFETIME_MS : beforeMs;
}

/** What is wanted of one market: guarded, or out of guard for a reason; `lapsed` by `onLapse: hold`. */
export type Intent = 'guard' | 'pause' | 'disarm' | 'trip' | 'remove' | 'lapsed';

interface IntentPage {
  intent: Intent;
  /** When the market was last given back into guard, or lapsed; the start of the daemon where neither happened. */
  guardedSinceMs: number;
  /** Until when deletes, or requests of a trip, may arrive; `Infinity` while they are asked for. */
  deletesUntilMs: number;
  tripsUntilMs: number;
  /** Since when another daemon renews the market's timer; null where none does. */
  movedSinceMs: number | null;
}

const DELETES: ReadonlySet<Intent> = new Set(['pause', 'disarm']);

/**
 * What operators and the configuration asked of each daemon, and since when. True milliseconds. `removalDeletes`:
 * whether a reload that takes a market out of this daemon is to delete its timer.
 */
export function createIntentBook(nowMs: () => number, removalDeletes: (incarnation: Incarnation) => boolean) {
  const pageOf = perMarket(
    ({ startedMs }): IntentPage => ({
      intent: 'guard',
      guardedSinceMs: startedMs,
      deletesUntilMs: Number.NEGATIVE_INFINITY,
      tripsUntilMs: Number.NEGATIVE_INFINITY,
      movedSinceMs: null,
    }),
  );

  return {
    of: (by: Incarnation, market: string): Readonly<IntentPage> => pageOf(by, market),
    note(by: Incarnation, market: string, intent: Intent): void {
      const page = pageOf(by, market);
      if (intent === 'remove') page.movedSinceMs = null;
      const asked =
        (DELETES.has(intent) && page.movedSinceMs === null) ||
        (intent === 'remove' && (DELETES.has(page.intent) || removalDeletes(by)));
      // A market that is taken out while its trip is under way is tripped all the same.
      const trips = intent === 'trip' || (intent === 'remove' && page.intent === 'trip');
      page.intent = intent;
      if (intent === 'guard' || intent === 'lapsed') page.guardedSinceMs = nowMs();
      page.deletesUntilMs = until(asked, page.deletesUntilMs, nowMs());
      page.tripsUntilMs = until(trips, page.tripsUntilMs, nowMs());
    },
    /** The market belongs to another daemon from now on, or to this one again. Nothing where that is known. */
    move: (by: Incarnation, market: string, away: boolean): void => {
      const page = pageOf(by, market);
      if (away === (page.movedSinceMs !== null)) return;
      page.movedSinceMs = away ? nowMs() : null;
      page.deletesUntilMs = until(!away && DELETES.has(page.intent), page.deletesUntilMs, nowMs());
    },
  };
}

/** What one daemon wrote for one market, and heard of it. True milliseconds; `-Infinity` where it never happened. */
interface MarketLog {
  /** Its newest attempt, its newest renewal on the wire, and its newest confirmed one. */
  triedMs: number;
  renewedMs: number;
  confirmedMs: number;
  /** Its requests that the daemon waits for, the oldest first. */
  onTheWay: readonly { readonly number: number; readonly leftMs: number }[];
  /** The last time that there were three of them: until then, and when the oldest of them had left. */
  full: { readonly untilMs: number; readonly oldestMs: number };
  /**
   * When renewals left after that one did, on the monotonic clock of their host: all that could have kept the timer. One
   * that left before the answer is among them.
   */
  later: readonly number[];
  /** When deletes left that were never confirmed, on the same clock. */
  deletes: readonly number[];
  /** What was decided on, in the order of signing. */
  readonly decided: Decision[];
}

/** What a daemon had decided on when a request of its market was signed. */
interface Decision {
  readonly purpose: Purpose;
  readonly atMs: number;
  /** The same on the monotonic clock of the host. */
  readonly monoMs: number;
}

const NEVER_MS = Number.NEGATIVE_INFINITY;
const NOTHING_WRITTEN: MarketLog = {
  triedMs: NEVER_MS,
  renewedMs: NEVER_MS,
  confirmedMs: NEVER_MS,
  onTheWay: [],
  full: { untilMs: NEVER_MS, oldestMs: NEVER_MS },
  later: [],
  deletes: [],
  decided: [],
};

/** No more requests of a market are on their way at a time. */
export const MOST_IN_FLIGHT = 3;

/** The requests on the wire and the answers that the daemons told of. */
export function createWireLog(nowMs: () => number) {
  const of = perMarket((): MarketLog => ({ ...NOTHING_WRITTEN, decided: [] }));
  const troublesOf = perKey((_by: Incarnation) => ({ count: 0 }));
  return {
    of,
    /** Its address is out, or its key refused. */
    isDisturbed: (by: Incarnation) => troublesOf(by).count > 0,
    onWrite(by: Incarnation, market: string, renews: boolean, number: number): void {
      const log = of(by, market);
      log.onTheWay = [...log.onTheWay, { number, leftMs: nowMs() }];
      const leftMs = by.clock.now().monoMs;
      if (!renews) log.deletes = [...log.deletes, leftMs];
      if (!renews) return;
      log.renewedMs = nowMs();
      log.later = [...log.later, leftMs];
    },
    /** The daemon is told what became of a request, or has given it up. */
    onSettled(by: Incarnation, market: string, number: number): void {
      const log = of(by, market);
      const oldestMs = log.onTheWay.at(-MOST_IN_FLIGHT)?.leftMs;
      if (oldestMs !== undefined) log.full = { untilMs: nowMs(), oldestMs };
      log.onTheWay = log.onTheWay.filter((one) => one.number !== number);
    },
    onNotice(by: Incarnation, notice: Notice): void {
      if (notice.kind === 'outage-began' || notice.kind === 'unauthorised') troublesOf(by).count += 1;
      if (notice.kind === 'outage-ended' || notice.kind === 'authorised-again') troublesOf(by).count -= 1;
      if (notice.kind === 'attempt') {
        const log = of(by, notice.market);
        // One that finds no connection is never written.
        log.triedMs = nowMs();
        log.decided.push({ purpose: notice.purpose, atMs: nowMs(), monoMs: by.clock.now().monoMs });
      }
      // What a reload brings back after that was never armed.
      if (notice.kind === 'removed') of(by, notice.market).confirmedMs = NEVER_MS;
      if (notice.kind !== 'renewed' && notice.kind !== 'deleted') return;
      const log = of(by, notice.market);
      const decidedMs = by.clock.now().monoMs - notice.durationMs - TOLERANCE_MS;
      if (notice.kind === 'deleted') {
        const deleted = log.deletes.findIndex((leftMs) => leftMs >= decidedMs);
        log.deletes = log.deletes.filter((_, place) => place !== deleted);
        return;
      }
      log.confirmedMs = nowMs();
      const confirmed = log.later.findIndex((leftMs) => leftMs >= decidedMs);
      log.later = confirmed < 0 ? [] : log.later.slice(confirmed + 1);
    },
  };
}

/** Numbers and names of the invariants in the design, section 1. */
export const INVARIANTS = [
  '1 belief',
  '2 false lapse',
  '3 bounded kill',
  '4 posthumous renewal',
  '5 delete on purpose',
  '6 nothing after delete',
  '7 unconfirmed delete',
  '8 lapses',
  '9 nonces',
  '10 rate',
  '11 progress',
  '12 isolation',
] as const;
export type Invariant = (typeof INVARIANTS)[number];

/** One broken promise, at a true moment; or an error that would have ended the process. */
export interface Violation {
  readonly invariant: Invariant | 'uncaught error';
  readonly atMs: number;
  readonly text: string;
}

/** What every judge of a run may look at, on both sides of the wire. */
export interface Court {
  readonly plan: Plan;
  readonly nowMs: () => number;
  /** The exchange's clock, Unix milliseconds. */
  readonly serverNowMs: () => number;
  /** In the order of the plan's markets. */
  readonly truths: readonly Truth[];
  readonly truthOf: (market: string) => Truth | undefined;
  readonly evidence: ReturnType<typeof createEvidenceBook>;
  readonly intents: ReturnType<typeof createIntentBook>;
  readonly log: ReturnType<typeof createWireLog>;
  readonly running: ReadonlyMap<number, Incarnation>;
  readonly blame: (invariant: Invariant, text: string) => void;
}

/** A request's first byte leaves. */
interface Writing {
  readonly by: Incarnation;
  readonly truth: Truth;
  readonly sent: Sent;
  readonly nonce: string;
  /** Null for a delete. */
  readonly timeoutSeconds: number | null;
  /** What had been decided; null where that is not known. */
  readonly decision: Decision | null;
  readonly purpose: Purpose;
}

/** What happens in a run, and what a judge is told of it. */
interface Happenings {
  /** A daemon took a step. */
  readonly onTurn: [by: Incarnation];
  readonly onNotice: [by: Incarnation, notice: Notice];
  readonly onWrite: [writing: Writing];
  /** A request has reached the exchange, or what stands before it. */
  readonly onArrival: [by: Incarnation, market: string, sent: Sent];
  /** A timer is armed, `anew` where none was there; `by` is null where it was nobody's of ours. */
  readonly onArmed: [truth: Truth, by: Incarnation | null, anew: boolean];
  /** The exchange carried a delete of this daemon out. */
  readonly onDeleted: [truth: Truth, by: Incarnation, sent: Sent];
  readonly onFired: [truth: Truth];
  /** Something happened to the market's timer at the exchange. */
  readonly onChanged: [truth: Truth];
  /** The timer is wanted again. */
  readonly onWanted: [market: string, by: Incarnation];
  readonly onEnd: [];
}
export type Happening = keyof Happenings;
export type Told<What extends Happening> = Happenings[What];
/** A judge hears of what it wants to. */
export type Listener = { readonly [What in Happening]?: (...told: Happenings[What]) => void };

/** Clocks drift, events of one instant have an order: this much is not a violation. */
export const TOLERANCE_MS = 20;
