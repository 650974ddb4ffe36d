import type { Purpose } from '../../src/core/events.ts';
import type { CoreView, MarketView } from '../../src/core/view.ts';
import {
  BUDGET_MS,
  type Court,
  type Incarnation,
  type Listener,
  nameOf,
  perMarket,
  type Sent,
  TOLERANCE_MS,
  type Truth,
} from './court.ts';
import { type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

/** A daemon that runs looks at its clocks at least this often. */
const TICK_MS = 250;

/** Invariant 1: after every turn of a daemon, and every change of a timer, the true lapse lies between the two ends of what it believes. */
export function createBeliefJudge(court: Court): Listener {
  const { truthOf, running, nowMs, blame } = court;

  function judgeStart(incarnation: Incarnation, seen: MarketView, truth: Truth): void {
    const slack = seen.sureMs ?? 0;
    if (slack <= TOLERANCE_MS) return;
    const lastsMs = truth.firesMs === null ? 0 : truth.firesMs - nowMs();
    if (lastsMs > 0 && lastsMs >= slack - TOLERANCE_MS) return;
    const tooLong =
      lastsMs <= 0
        ? `for ${slack.toFixed(0)} ms more, and it is not`
        : `${(slack - lastsMs).toFixed(0)} ms longer than it is`;
    blame('1 belief', `${truth.market}: ${nameOf(incarnation)} believes it armed ${tooLong}`);
  }

  function judgeEnd(incarnation: Incarnation, { phase }: CoreView, seen: MarketView, truth: Truth): void {
    const lastsMs = truth.firesMs === null ? 0 : truth.firesMs - nowMs();
    if (truth.owner !== incarnation || lastsMs <= 0 || phase === 'stopped') return;
    const latestMs = seen.firesInMs ?? 0;
    if (latestMs >= lastsMs - TOLERANCE_MS) return;
    blame(
      '1 belief',
      `${truth.market}: fires in ${lastsMs.toFixed(0)} ms, ${nameOf(incarnation)} says within ${latestMs.toFixed(0)} ms`,
    );
  }

  function judge(incarnation: Incarnation, view: CoreView, seen: MarketView, truth: Truth): void {
    judgeStart(incarnation, seen, truth);
    judgeEnd(incarnation, view, seen, truth);
  }

  return {
    onTurn: (incarnation: Incarnation): void => {
      const view = incarnation.view();
      for (const seen of view.markets) {
        const truth = truthOf(seen.market);
        if (truth !== undefined && nowMs() >= truth.brokenUntilMs) judge(incarnation, view, seen, truth);
      }
    },
    onChanged: (truth: Truth): void => {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const incarnation of running.values()) {
        const { clock } = incarnation;
        const view = incarnation.view();
        const seen = view.marketNamed(truth.market);
        // A host that stands still, or slept, reads its clocks first.
        if (seen === undefined || clock.isStalled() || clock.now().monoMs - view.monoMs > TICK_MS) continue;
        judge(incarnation, view, seen, truth);
      }
    },
  };
}

/** Two ticks of the core, in which a host may stand still before anybody can tell, and a little more. */
const UNNOTICED_MS = 750;

/** A request may leave so long after it was decided on: a connection was opened for it. */
function latestDepartureMs({ roundTripMs }: Plan): number {
  return UNNOTICED_MS + roundTripMs;
}

/**
 * Invariant 1, before anything is believed: the daemon counts a request, and how long it may still be carried out, from
 * the moment at which it decided on it. What stayed behind in a stall may not leave after it.
 */
export function createDepartureJudge({ plan, nowMs, blame }: Court): Listener {
  const latestMs = latestDepartureMs(plan);
  return {
    onWrite({ by, truth, decision }) {
      if (decision === null) return;
      const { purpose, atMs, monoMs } = decision;
      // While the host sleeps, what is counted on that clock stands still: a trip or a delete may leave after it.
      const lateMs = purpose === 'renew' ? nowMs() - atMs : by.clock.now().monoMs - monoMs;
      if (lateMs <= latestMs) return;
      const said = `wrote a request ${lateMs.toFixed(0)} ms after it had decided on it`;
      blame('1 belief', `${truth.market}: ${nameOf(by)} ${said}`);
    },
  };
}

/** So much of a stop's budget goes by waiting for strays, and no more: what is left is for the delete. */
const WAITS_MS = BUDGET_MS - 1000;

/** What a daemon wrote for one market to arm its timer. True milliseconds. */
interface Post {
  /** Renewals and trips that the exchange has not got, and when they left; lost ones too, since nobody can tell. */
  readonly onTheWay: Map<Sent, { readonly purpose: Purpose; readonly leftMs: number }>;
  /** When the last one left, on the daemon's own clock. */
  lastMonoMs: number;
  /** A stop has written a delete. */
  deletedInStop: boolean;
}

/**
 * Invariants 3 and 6: without rising nonces what ends or shortens a timer is not written while a renewal may still arrive
 * behind it; and in either mode nothing is renewed that is guarded no longer.
 */
export function createStrayJudge(court: Court) {
  const { plan, intents, nowMs, blame } = court;
  const postOf = perMarket(
    (): Post => ({ onTheWay: new Map(), lastMonoMs: Number.NEGATIVE_INFINITY, deletedInStop: false }),
  );
  // A daemon counts from when it decided on a request, which is a little earlier.
  const dangerousMs = REQUEST_LIFETIME_MS - latestDepartureMs(plan);

  /**
   * Could a renewal of the market still arrive when the budget of the stop ends? A suspend brings that end nearer, and no
   * daemon counts it as time in which the renewal has arrived.
   */
  function hasNoTime(market: string, by: Incarnation): boolean {
    if (plan.nonce !== 'window' || by.stoppingMs === null) return false;
    const dangerMs = postOf(by, market).lastMonoMs + REQUEST_LIFETIME_MS - by.clock.now().monoMs;
    return dangerMs >= by.stoppingMs + WAITS_MS - TOLERANCE_MS - nowMs();
  }

  /** A trip behind a trip undoes nothing. */
  function mayArrive({ onTheWay }: Post, behind: 'trip' | 'delete'): boolean {
    for (const [sent, { leftMs }] of onTheWay) if (nowMs() - leftMs >= dangerousMs) onTheWay.delete(sent);
    return onTheWay.values().some(({ purpose }) => purpose === 'renew' || behind === 'delete');
  }

  function judgeEnd(truth: Truth, by: Incarnation, purpose: 'trip' | 'delete'): void {
    if (plan.nonce !== 'window' || !mayArrive(postOf(by, truth.market), purpose)) return;
    if (purpose === 'delete' && hasNoTime(truth.market, by)) return;
    const invariant = purpose === 'delete' ? '6 nothing after delete' : '3 bounded kill';
    blame(
      invariant,
      `${truth.market}: ${nameOf(by)} wrote a ${purpose} while a renewal could still arrive behind it`,
    );
  }

  function judgeRenewal({ market }: Truth, by: Incarnation): void {
    // A handoff ends with a last renewal, and so does a market that another daemon has by now.
    if (plan.daemons[by.daemon]?.policy === 'handoff' || intents.of(by, market).movedSinceMs !== null) return;
    const { intent, guardedSinceMs, deletesUntilMs, tripsUntilMs } = intents.of(by, market);
    if (intent === 'lapsed' && nowMs() - guardedSinceMs > plan.roundTripMs + TOLERANCE_MS)
      blame('8 lapses', `${market}: ${nameOf(by)} renewed what a lapse has taken out of guard`);
    const ends = Math.max(deletesUntilMs, tripsUntilMs);
    // A stop that deletes waits for a sign of life of the bot, and for strays, such as those of another key; it guards the market until its first delete.
    const waits =
      (plan.watched || plan.nonce === 'window' || plan.faults.some(({ kind }) => kind === 'new-key')) &&
      plan.daemons[by.daemon]?.policy === 'delete' &&
      !postOf(by, market).deletedInStop;
    if ((by.stoppingMs === null || waits) && ends < Number.POSITIVE_INFINITY) return;
    blame('6 nothing after delete', `${market}: ${nameOf(by)} renewed what it guards no longer`);
  }

  const listener: Listener = {
    onWrite({ truth, by, sent, purpose }) {
      if (purpose === 'renew') judgeRenewal(truth, by);
      else judgeEnd(truth, by, purpose);
      const post = postOf(by, truth.market);
      if (purpose === 'delete') {
        if (by.stoppingMs !== null) post.deletedInStop = true;
        return;
      }
      post.onTheWay.set(sent, { purpose, leftMs: nowMs() });
      post.lastMonoMs = by.clock.now().monoMs;
    },
    onArrival: (by, market, sent) => void postOf(by, market).onTheWay.delete(sent),
  };
  return { ...listener, hasNoTime };
}
