import type { Certainty, Notice } from '../../src/core/notice.ts';
import { isUndisturbed } from './conditions.ts';
import {
  type Court,
  type Incarnation,
  type Listener,
  nameOf,
  perKey,
  perMarket,
  TOLERANCE_MS,
  type Truth,
  TTL_MS,
} from './court.ts';
import { botName, type FaultKind, REQUEST_LIFETIME_MS } from './plan.ts';
import { BOOT_MS } from './virtual-clock.ts';

/** How long after its start, or after new evidence, a daemon may take to be armed. */
const ARMED_WITHIN_MS = 7000;

/** What a stall may date a word back by, beside its own length: the step before it, and what is read right after it. */
const DATED_BACK_MS = 2000;
/** The clocks show time that went by while nothing ran: words count as older by that. */
const JUMPS: ReadonlySet<FaultKind> = new Set(['suspend', 'wall-step', 'halts-connecting']);

/** Invariant 2: while its bot lives no timer fires, but for long enough outages, and it is not called silent. */
export function createFalseLapseJudge(court: Court): Listener {
  const { plan, evidence, intents, running, nowMs, blame } = court;
  const armedOnce = perKey((_by: Incarnation) => new Set<string>());
  /** Markets whose timer somebody else has armed after it had ended: a daemon that lost it cannot know of this one. */
  const foreign = new Set<string>();

  function mustHaveHeld(by: Incarnation, truth: Truth): boolean {
    const { market, longestMs, bot } = truth;
    const { intent, guardedSinceMs } = intents.of(by, market);
    const { untilMs, sinceMs } = evidence.of(by, bot);
    if (intent !== 'guard' || by.stoppingMs !== null || !armedOnce(by).has(market)) return false;
    if (!evidence.isSteady(by, bot) || untilMs <= nowMs()) return false;
    if (Math.max(guardedSinceMs, sinceMs) > nowMs() - longestMs - ARMED_WITHIN_MS) return false;
    return isUndisturbed(plan, truth, nowMs());
  }

  const { evidence: mode = 'beat', faults } = plan;
  // Two that stutter at a time leave no room between stalls.
  const isUnclear =
    faults.some(({ kind }) => JUMPS.has(kind)) || faults.filter(({ kind }) => kind === 'stutters').length > 1;
  const stalls = faults.map(({ kind, forMs, sizeMs }) =>
    kind === 'stall' ? forMs : kind === 'stutters' ? sizeMs : 0,
  );
  const spokeWithinMs = TTL_MS - DATED_BACK_MS - 2 * Math.max(0, ...stalls);

  /** Two stalls may follow each other too closely to read what had waited. */
  function judgeSilent(by: Incarnation, name: string): void {
    const bot = Array.from({ length: plan.bots }, (_, index) => botName(index)).indexOf(name);
    const { lastWord, saidMs, heardMs, beforeMs } = evidence.of(by, bot);
    // One that is heard in this very step comes too late.
    const lastMs = heardMs === nowMs() ? beforeMs : saidMs;
    const agoMs = nowMs() - lastMs;
    if (mode !== 'beat' || isUnclear || lastWord !== 'beat' || lastMs === by.startedMs) return;
    if (agoMs < spokeWithinMs) blame('2 false lapse', `${nameOf(by)} calls ${name} silent after ${agoMs} ms`);
  }

  return {
    onNotice(by, notice) {
      if (notice.kind === 'bot' && notice.state === 'stale') judgeSilent(by, notice.bot);
      if (notice.kind === 'suspended' || notice.kind === 'held' || notice.kind === 'removed')
        armedOnce(by).delete(notice.market);
      if (notice.kind === 'renewed') armedOnce(by).add(notice.market);
    },
    onArmed({ market }, by, anew) {
      if (by !== null) foreign.delete(market);
      else if (anew) foreign.add(market);
    },
    onFired(truth) {
      if (nowMs() < truth.brokenUntilMs || foreign.has(truth.market)) return;
      for (const by of running.values()) {
        const although = `although ${nameOf(by)} ran, its bot lived and no outage was long enough`;
        if (mustHaveHeld(by, truth)) blame('2 false lapse', `${truth.market}: fired ${although}`);
      }
    },
  };
}

/** A guarantee ends this long before its timer fires: the exchange counts whole seconds, and may round them up. */
const EDGE_MS = 2300;

/** So long after it fired the stamps of the next timer show it, however they are rounded. */
const CLEARLY_MS = 2500;

/** With these a daemon cannot know what its timers went through. */
const FOREIGN: ReadonlySet<FaultKind> = new Set([
  'actor-deletes',
  'actor-changes',
  'lie',
  'forget-timers',
  'server-clock-step',
  // What a confirmation says of the moment before it depends on the timeout that was asked for.
  'reload-timeout',
]);

/** What a daemon may know of a market's timer: its newest confirmation since its bot last came back. */
interface Known {
  readonly cancellationTime: number | null;
  /** How long its daemon had run when the request left that was confirmed, by the daemon's own clock. */
  readonly writtenMs: number;
  lapses: number;
  /** Whether the timer is wanted, and since when: the bot's return, or the start where it never went away. */
  readonly wanted: boolean;
  readonly atEdge: boolean;
  readonly sinceMs: number;
}

const UNKNOWN = { cancellationTime: null, writtenMs: 0, lapses: 0, wanted: true, atEdge: false };

function hasFired({ fired }: Truth, { cancellationTime }: Known): boolean {
  return cancellationTime !== null && fired.some((moment) => moment >= cancellationTime);
}

/** Invariant 8: every timer that fired and was armed again is reported once, and none that did not fire. */
export function createLapseReportJudge({ plan, truthOf, intents, log, nowMs, blame }: Court): Listener {
  // With several daemons each sees only its own part of a timer's life.
  const canTell = plan.daemons.length === 1 && !plan.faults.some(({ kind }) => FOREIGN.has(kind));
  // No nonce of the new key makes a request of the old one stale.
  const isRekeyed = () => plan.faults.some(({ kind, atMs }) => kind === 'new-key' && atMs <= nowMs());
  const knownTo = perKey((_by: Incarnation) => new Map<string, Known>());
  /** Markets with a lapse under `onLapse: hold` that are not held yet. */
  const lapsed = new Map<Incarnation, string>();

  /** Gaps that a stop has not told of yet. */
  const owed: { by: Incarnation; market: string; text: string }[] = [];

  function judgeReport(name: string, truth: Truth, known: Known, certainty: Certainty): void {
    const { market, fired, lastFiredMs } = truth;
    const { cancellationTime, wanted, sinceMs } = known;
    known.lapses += 1;
    if (known.lapses > 1) blame('8 lapses', `${market}: ${name} reported one gap twice`);
    if (certainty === 'possible' || known.atEdge) return;
    if (cancellationTime === null) {
      // What fired while nobody wanted the timer fired on purpose.
      if (wanted ? lastFiredMs < sinceMs : lastFiredMs > sinceMs)
        blame('8 lapses', `${market}: ${name} is certain of a lapse while nobody wanted the timer`);
    } else if (!fired.some((moment) => moment >= cancellationTime)) {
      blame('8 lapses', `${market}: ${name} is certain of a lapse that never was`);
    }
  }

  /** It is armed again until then. */
  function judgeSilence(by: Incarnation, { market, timeoutMs, fired }: Truth, known: Known, untilS: number) {
    const { cancellationTime, lapses, atEdge } = known;
    if (cancellationTime === null || lapses > 0 || atEdge) return;
    const startTime = untilS - timeoutMs / 1000;
    if (!fired.some((moment) => moment >= cancellationTime && moment <= startTime)) return;
    const text = `${market}: ${nameOf(by)} armed it again after a lapse and said nothing`;
    // What a stop was to delete, and has fired before, is to be named at its end.
    if (by.stoppingMs === null) blame('8 lapses', text);
    else owed.push({ by, market, text });
  }

  /** A lapse takes its market out of guard in the same step. */
  function judgeHold(by: Incarnation, notice: Notice): void {
    if (plan.onLapse !== 'hold') return;
    // What is out of guard already stays as it is.
    if (notice.kind === 'lapsed' && intents.of(by, notice.market).intent === 'guard')
      lapsed.set(by, notice.market);
    if (notice.kind === 'held') lapsed.delete(by);
    if (notice.kind !== 'renewed' || !lapsed.delete(by)) return;
    const said = 'keeps guarding it after a lapse, against `onLapse: hold`';
    blame('8 lapses', `${notice.market}: ${nameOf(by)} ${said}`);
  }

  /**
   * A delete of its own, or in a nonce window one of an earlier life, may have ended the timer first. A daemon does not
   * count the time that its host slept.
   */
  function mayBeDeleted(by: Incarnation, { market }: Truth, { writtenMs }: Known): boolean {
    const isEarly = plan.nonce === 'window' && writtenMs < REQUEST_LIFETIME_MS + TOLERANCE_MS;
    return isEarly || log.of(by, market).deletes.length > 0;
  }

  /** It fired once, when its confirmed end came, and nothing has armed it since: whoever says so now, says it by the clock. */
  function isOver({ fired, firesMs }: Truth, { cancellationTime, atEdge }: Known): boolean {
    if (atEdge || cancellationTime === null || firesMs !== null) return false;
    const since = fired.filter((moment) => moment >= cancellationTime);
    return since.length === 1 && (since[0] ?? 0) <= cancellationTime;
  }

  /**
   * Only the renewal that was confirmed now has left since the one before it, and with rising nonces no older one counts:
   * nothing can have kept the timer from firing, and its stamps show that it did.
   */
  function isCertain(by: Incarnation, truth: Truth, known: Known): boolean {
    if (plan.nonce !== 'increasing' || isRekeyed() || known.atEdge || !hasFired(truth, known)) return false;
    const firedForMs = truth.remadeMs - truth.lastFiredMs;
    return log.of(by, truth.market).later.length === 1 && firedForMs > CLEARLY_MS + plan.cancellationDelayMs;
  }

  function onMarket(by: Incarnation, truth: Truth, notice: Notice): void {
    const all = knownTo(by);
    // Its guarantee can end long before its timer does, where requests overtook each other.
    const guaranteeIsOut = (by.view().marketNamed(truth.market)?.sureMs ?? null) === null;
    const fresh = { ...UNKNOWN, sinceMs: nowMs() };
    const known = all.get(truth.market) ?? { ...fresh, sinceMs: by.startedMs };
    const know = (now: Known) => all.set(truth.market, now);
    know(known);
    switch (notice.kind) {
      case 'suspended':
      case 'held':
      case 'removed': {
        // What fired before is a lapse that may be reported; nobody is blamed either way, since a lost answer can
        // have hidden what came after it.
        const firesSoon =
          truth.firesMs !== null && truth.firesMs < nowMs() + EDGE_MS + plan.cancellationDelayMs;
        const atEdge = known.atEdge || hasFired(truth, known) || guaranteeIsOut || firesSoon;
        know({ ...fresh, wanted: false, atEdge });
        break;
      }
      case 'resumed':
      case 'released':
        know({ ...fresh, atEdge: known.atEdge });
        break;
      case 'tripped':
      case 'deleted':
        know({ ...fresh, atEdge: true });
        break;
      case 'lapsed':
        judgeReport(nameOf(by), truth, known, notice.certainty);
        if (notice.certainty !== 'possible' || mayBeDeleted(by, truth, known)) break;
        if (isOver(truth, known) || isCertain(by, truth, known))
          blame('8 lapses', `${truth.market}: ${nameOf(by)} calls a lapse possible that is certain`);
        break;
      case 'renewed': {
        const { cancellationTime, durationMs } = notice;
        // A late answer about a timer before the one that is known: what came between was told of with that one.
        if (cancellationTime < (known.cancellationTime ?? 0)) break;
        judgeSilence(by, truth, known, cancellationTime);
        const writtenMs = by.clock.now().monoMs - BOOT_MS - durationMs;
        const atEdge = !known.wanted && (known.atEdge || guaranteeIsOut);
        know({ ...known, cancellationTime, writtenMs, lapses: 0, atEdge });
        break;
      }
      default:
        break;
    }
  }

  return {
    onNotice(by, notice) {
      judgeHold(by, notice);
      if (!canTell) return;
      if (notice.kind === 'stopped')
        for (const { market, text } of owed.filter((one) => one.by === by))
          if (!notice.left.some((one) => one.market === market)) blame('8 lapses', text);
      // A market that comes back may have fired before it went.
      const known = knownTo(by);
      if (notice.kind === 'reloaded' && known.size > 0)
        for (const market of notice.added) {
          const atEdge = known.get(market)?.atEdge ?? false;
          known.set(market, { ...UNKNOWN, atEdge, sinceMs: by.startedMs });
        }
      if (!('market' in notice)) return;
      const truth = truthOf(notice.market);
      if (truth !== undefined) onMarket(by, truth, notice);
    },
  };
}

/** What was good before is latched at the second refusal in a row. */
const LOOKS = 2;

/**
 * A market or a key that was good is not given up for a single refusal. A latch leaves timers to fire, and while it holds
 * invariant 2 says nothing: that there was a reason for it is judged here.
 */
export function createLatchJudge({ blame, plan }: Court): Listener {
  const changesKey = plan.faults.some(({ kind }) => kind === 'new-key');
  /** What one daemon was refused since it was last answered well, by market, and for the key; null before that. */
  const refusalsOf = perKey((_by: Incarnation) => ({
    byMarket: new Map<string, number>(),
    ofKey: null as number | null,
  }));
  function judge(by: Incarnation, what: string, refusals: number): void {
    if (refusals < LOOKS)
      blame('2 false lapse', `${what}: ${nameOf(by)} gave it up after ${refusals} refusals`);
  }

  return {
    onNotice(by, notice) {
      const refusals = refusalsOf(by);
      const { byMarket } = refusals;
      switch (notice.kind) {
        case 'renewed':
        case 'tripped':
        case 'deleted':
          if (notice.kind !== 'deleted' || byMarket.has(notice.market)) byMarket.set(notice.market, 0);
          refusals.ofKey = 0;
          break;
        case 'removed':
          byMarket.delete(notice.market);
          // Nothing that is left was ever renewed: a new key is not known to be good.
          if (changesKey && byMarket.size === 0) refusals.ofKey = null;
          break;
        case 'attempt-failed': {
          const known = byMarket.get(notice.market);
          if (notice.reason === 'validation' && known !== undefined) byMarket.set(notice.market, known + 1);
          if (notice.reason === 'auth' && refusals.ofKey !== null) refusals.ofKey += 1;
          break;
        }
        case 'refused':
          judge(by, notice.market, byMarket.get(notice.market) ?? LOOKS);
          break;
        case 'unauthorised':
          judge(by, 'the key', refusals.ofKey ?? LOOKS);
          break;
        default:
          break;
      }
    },
  };
}

/** Confirmations, and the end of a market that a reload took out. */
const ENDS: ReadonlySet<Notice['kind']> = new Set(['renewed', 'tripped', 'deleted', 'removed']);

/**
 * A streak of failures is one market's own: it ends with a confirmation of that market and with nothing else. Alerts
 * count on it; another market's success once hid forty failed renewals.
 */
export function createStreakJudge({ blame }: Court): Listener {
  const streakOf = perMarket(() => ({ failures: 0 }));
  return {
    onNotice(by, notice) {
      if (ENDS.has(notice.kind) && 'market' in notice) streakOf(by, notice.market).failures = 0;
      // Streak 0 marks a late failure of an attempt that a newer one has overtaken.
      if (notice.kind !== 'attempt-failed' || notice.streak === 0) return;
      const own = streakOf(by, notice.market);
      own.failures += 1;
      if (notice.streak === own.failures) return;
      const said = `counts ${notice.streak} failures in a row, there were ${own.failures}`;
      blame('8 lapses', `${notice.market}: ${nameOf(by)} ${said}`);
    },
  };
}
