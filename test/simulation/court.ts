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
  /** Null for a ping, as what it asks for. */
  readonly market: string | null;
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
export const stopBudgetMs = ({ stopSeconds = 8 }: Plan): number => stopSeconds * 1000;

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

const NEVER_MS = Number.NEGATIVE_INFINITY;
const ENDLESS_MS = Number.POSITIVE_INFINITY;

export type Truth = ReturnType<typeof createTruths>[number];

/** What is true of every market's timer, in the order of the plan, as only the simulation can know it. True milliseconds. */
export function createTruths({ markets }: Plan) {
  return markets.map(({ market, bot, timeoutSeconds, renewEverySeconds }) => ({
    market,
    bot,
    renewEveryMs: renewEverySeconds === undefined ? null : renewEverySeconds * 1000,
    /** As it is configured now, the longest that it ever was, and since when it is what it is. */
    timeoutMs: timeoutSeconds * 1000,
    longestMs: timeoutSeconds * 1000,
    changedMs: NEVER_MS,
    /** Whose renewal made the timer that is armed now; null for somebody else's, or where none is armed. */
    owner: null as Incarnation | null,
    /** When the armed timer fires; null where none is armed. */
    firesMs: null as number | null,
    /** cancellationTime of every timer that fired, Unix seconds. */
    fired: [] as number[],
    /** When the last one did, and when the first timer after it was made. */
    lastFiredMs: NEVER_MS,
    remadeMs: NEVER_MS,
    /** The exchange lied, forgot or was changed by others: until the end of this no belief about it can be sound. */
    brokenAtMs: NEVER_MS,
    brokenUntilMs: 0,
  }));
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

/** What bots told each daemon, and what follows from it. True milliseconds. */
export function createEvidenceBook({ bots, watched }: Plan, nowMs: () => number) {
  const blank = ({ startedMs }: Incarnation) => ({
    /** Until when it allows the daemon to renew, and since when it has come without a break. */
    untilMs: watched ? startedMs + GRACE_MS : ENDLESS_MS,
    sinceMs: startedMs,
    /** Until when a daemon that has not heard of the bot may renew. */
    graceUntilMs: startedMs + GRACE_MS,
    /** Until when deletes for the bot's goodbye may arrive; `Infinity` while it holds. */
    goodbyeUntilMs: NEVER_MS,
    lastWord: 'beat' as BotWord,
    /** When that was said and heard, and when the word before was said. */
    saidMs: startedMs,
    heardMs: startedMs,
    beforeMs: startedMs,
    /** It was dead when a reload took its last market: it is not met anew when one comes back. */
    staysDead: false,
  });
  const lives: ReturnType<typeof blank>[][] = [];
  const pagesOf = perKey((by: Incarnation) => {
    const pages = Array.from({ length: bots }, () => blank(by));
    lives.push(pages);
    return pages;
  });
  const of = (by: Incarnation, bot: number) => pagesOf(by)[bot] ?? blank(by);
  function takeBackGoodbye(by: Incarnation, bot: number): void {
    const page = of(by, bot);
    page.goodbyeUntilMs = until(false, page.goodbyeUntilMs, nowMs());
  }

  return {
    begin: (by: Incarnation) => void pagesOf(by),
    of,
    /** A daemon that does not name a bot any more does not hear it. */
    dismiss: (by: Incarnation, bot: number): void => {
      const page = of(by, bot);
      page.staysDead = page.untilMs < nowMs() && page.goodbyeUntilMs !== ENDLESS_MS;
    },
    /** The daemon hears of a bot for the first time, or of one that it has forgotten: its start-up grace begins. */
    introduce: (by: Incarnation, bot: number): void => {
      const page = of(by, bot);
      const graceUntilMs = nowMs() + GRACE_MS;
      if (watched && !page.staysDead)
        Object.assign(page, { untilMs: graceUntilMs, graceUntilMs, sinceMs: nowMs() });
    },
    /** True where the word before holds no more: the first beat after another word, or a failure. */
    hear(by: Incarnation, bot: number, says: BotWord, saidMs: number): boolean {
      const page = of(by, bot);
      const { lastWord, untilMs, saidMs: beforeMs } = page;
      if (untilMs < nowMs() || nowMs() - beforeMs > STEADY_MS || says !== 'beat') page.sinceMs = nowMs();
      // What was said before already is no new end of its evidence.
      const endedMs = says === lastWord ? Math.min(untilMs, nowMs()) : nowMs();
      page.untilMs = says === 'beat' ? saidMs + TTL_MS : endedMs;
      // Heard after all: a word may be read right after its last market was taken out.
      if (says === 'beat') page.staysDead = false;
      // A bot that has said that it is broken does not end well any more.
      const isBroken = says === 'goodbye' && lastWord === 'fail';
      Object.assign(page, { lastWord: isBroken ? lastWord : says, saidMs, heardMs: nowMs(), beforeMs });
      if (says === 'goodbye' && !isBroken) page.goodbyeUntilMs = ENDLESS_MS;
      if (says === 'fail') takeBackGoodbye(by, bot);
      // A failure after a goodbye trips what a delete of unknown outcome may have left.
      return says !== lastWord && says !== 'goodbye';
    },
    /** Until when the evidence of whichever daemon, dead or alive, allows the longest. */
    allowedAnyoneUntilMs: (bot: number) => Math.max(0, ...lives.map((pages) => pages[bot]?.untilMs ?? 0)),
    /** Does the bot give evidence, steadily, as far as can be told now? */
    isSteady: (by: Incarnation, bot: number) => !watched || nowMs() - of(by, bot).saidMs <= STEADY_MS,
    takeBackGoodbye,
    saidGoodbye: (by: Incarnation, bot: number) => of(by, bot).goodbyeUntilMs === ENDLESS_MS,
  };
}

/** Until when what is `asked` for may arrive: for as long as that is so, and for as long as a request travels after it. */
function until(asked: boolean, beforeMs: number, nowMs: number): number {
  if (asked) return ENDLESS_MS;
  return beforeMs === ENDLESS_MS ? nowMs + REQUEST_LIFETIME_MS : beforeMs;
}

/** What is wanted of one market: guarded, or out of guard for a reason; `lapsed` by `onLapse: hold`. */
export type Intent = 'guard' | 'pause' | 'disarm' | 'trip' | 'remove' | 'lapsed';
const DELETES: ReadonlySet<Intent> = new Set(['pause', 'disarm']);

/** What operators and the configuration asked of each daemon, and since when. True milliseconds. */
export function createIntentBook({ daemons }: Plan, nowMs: () => number) {
  const of = perMarket(({ startedMs }) => ({
    intent: 'guard' as Intent,
    /** When the market was last given back into guard, or lapsed; the start of the daemon where neither happened. */
    guardedSinceMs: startedMs,
    /** Until when deletes, or requests of a trip, may arrive; `Infinity` while they are asked for. */
    deletesUntilMs: NEVER_MS,
    tripsUntilMs: NEVER_MS,
    /** Since when another daemon renews the market's timer; null where none does. */
    movedSinceMs: null as number | null,
  }));

  return {
    of,
    note(by: Incarnation, market: string, intent: Intent): void {
      const page = of(by, market);
      const removes = intent === 'remove';
      if (removes) page.movedSinceMs = null;
      const removalDeletes = DELETES.has(page.intent) || daemons[by.daemon]?.policy === 'delete';
      const asked = removes ? removalDeletes : DELETES.has(intent) && page.movedSinceMs === null;
      // A market that is taken out while its trip is under way is tripped all the same.
      const trips = intent === 'trip' || (removes && page.intent === 'trip');
      page.intent = intent;
      if (intent === 'guard' || intent === 'lapsed') page.guardedSinceMs = nowMs();
      page.deletesUntilMs = until(asked, page.deletesUntilMs, nowMs());
      page.tripsUntilMs = until(trips, page.tripsUntilMs, nowMs());
    },
    /** The market belongs to another daemon from now on, or to this one again. Nothing where that is known. */
    move: (by: Incarnation, market: string, away: boolean): void => {
      const page = of(by, market);
      if (away === (page.movedSinceMs !== null)) return;
      page.movedSinceMs = away ? nowMs() : null;
      page.deletesUntilMs = until(!away && DELETES.has(page.intent), page.deletesUntilMs, nowMs());
    },
  };
}

/** No more requests of a market are on their way at a time. */
export const MOST_IN_FLIGHT = 3;

/** What each daemon wrote for a market, and heard of it. True milliseconds; `-Infinity` where it never happened. */
export function createWireLog(nowMs: () => number) {
  const of = perMarket(() => ({
    /** Its first attempt since it was confirmed. */
    missedMs: Number.POSITIVE_INFINITY,
    /** Its newest attempt, its newest renewal on the wire, and its newest confirmed one. */
    triedMs: NEVER_MS,
    renewedMs: NEVER_MS,
    confirmedMs: NEVER_MS,
    /** Its requests that the daemon waits for, the oldest first. */
    onTheWay: [] as { readonly number: number; readonly leftMs: number }[],
    /** The last time that there were three of them: until then, and when the oldest of them had left. */
    full: { untilMs: NEVER_MS, oldestMs: NEVER_MS },
    /**
     * When renewals left after the confirmed one did, on the monotonic clock of their host: all that could have kept the
     * timer. One that left before the answer is among them.
     */
    later: [] as number[],
    /** When deletes left that were never confirmed, on the same clock. */
    deletes: [] as number[],
    /** What was decided on, in the order of signing; `monoMs` on the same clock. */
    decided: [] as { readonly purpose: Purpose; readonly atMs: number; readonly monoMs: number }[],
  }));
  const troublesOf = perKey((_by: Incarnation) => ({ count: 0 }));
  return {
    of,
    /** Its address is out, or its key refused. */
    isDisturbed: (by: Incarnation) => troublesOf(by).count > 0,
    onWrite(by: Incarnation, market: string, renews: boolean, number: number): void {
      const log = of(by, market);
      log.onTheWay.push({ number, leftMs: nowMs() });
      (renews ? log.later : log.deletes).push(by.clock.now().monoMs);
      if (renews) log.renewedMs = nowMs();
    },
    /** The daemon is told what became of a request, or has given it up. */
    onSettled(by: Incarnation, market: string, number: number): void {
      const log = of(by, market);
      const oldestMs = log.onTheWay.at(-MOST_IN_FLIGHT)?.leftMs;
      if (oldestMs !== undefined) log.full = { untilMs: nowMs(), oldestMs };
      log.onTheWay = log.onTheWay.filter((one) => one.number !== number);
    },
    onNotice(by: Incarnation, notice: Notice): void {
      const { kind } = notice;
      if (kind === 'outage-began' || kind === 'unauthorised') troublesOf(by).count += 1;
      if (kind === 'outage-ended' || kind === 'authorised-again') troublesOf(by).count -= 1;
      if (kind !== 'attempt' && kind !== 'removed' && kind !== 'renewed' && kind !== 'deleted') return;
      const log = of(by, notice.market);
      const { monoMs } = by.clock.now();
      if (kind === 'attempt') {
        // One that finds no connection is never written.
        log.triedMs = nowMs();
        log.missedMs = Math.min(log.missedMs, nowMs());
        log.decided.push({ purpose: notice.purpose, atMs: nowMs(), monoMs });
      } else if (kind === 'removed') {
        // What a reload brings back after that was never armed.
        log.confirmedMs = NEVER_MS;
      } else {
        const sent = kind === 'renewed' ? log.later : log.deletes;
        const place = sent.findIndex((leftMs) => leftMs >= monoMs - notice.durationMs - TOLERANCE_MS);
        if (kind === 'renewed') {
          log.confirmedMs = nowMs();
          log.missedMs = Number.POSITIVE_INFINITY;
          log.later = place < 0 ? [] : sent.slice(place + 1);
        } else if (place >= 0) sent.splice(place, 1);
      }
    },
  };
}

/** The guarantees of ARCHITECTURE.md by their numbers there, with a name for each. */
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
type Invariant = (typeof INVARIANTS)[number];

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
  readonly decision: ReturnType<Court['log']['of']>['decided'][number] | null;
  readonly purpose: Purpose;
}

/** A judge hears of what it wants to. */
export interface Listener {
  /** A daemon took a step. */
  readonly onTurn?: (by: Incarnation) => void;
  readonly onNotice?: (by: Incarnation, notice: Notice) => void;
  readonly onWrite?: (writing: Writing) => void;
  /** A request has reached the exchange, or what stands before it. */
  readonly onArrival?: (by: Incarnation, market: string, sent: Sent) => void;
  /** A timer is armed, `anew` where none was there; `by` is null where it was nobody's of ours. */
  readonly onArmed?: (truth: Truth, by: Incarnation | null, anew: boolean) => void;
  /** The exchange carried a delete of this daemon out. */
  readonly onDeleted?: (truth: Truth, by: Incarnation, sent: Sent) => void;
  readonly onFired?: (truth: Truth) => void;
  /** Something happened to the market's timer at the exchange. */
  readonly onChanged?: (truth: Truth) => void;
  /** The timer is wanted again. */
  readonly onWanted?: (market: string, by: Incarnation) => void;
  readonly onEnd?: () => void;
}

/** Clocks drift, events of one instant have an order: this much is not a violation. */
export const TOLERANCE_MS = 20;
