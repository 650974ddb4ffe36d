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
export function createBeliefJudge({ truthOf, running, nowMs, blame }: Court): Listener {
  function judge(by: Incarnation, { phase }: CoreView, seen: MarketView, truth: Truth): void {
    const { market, firesMs, owner } = truth;
    const lastsMs = firesMs === null ? 0 : firesMs - nowMs();
    const sureMs = seen.sureMs ?? 0;
    if (sureMs > TOLERANCE_MS && (lastsMs <= 0 || lastsMs < sureMs - TOLERANCE_MS)) {
      const tooLong =
        lastsMs <= 0
          ? `for ${sureMs.toFixed(0)} ms more, and it is not`
          : `${(sureMs - lastsMs).toFixed(0)} ms longer than it is`;
      blame('1 belief', `${market}: ${nameOf(by)} believes it armed ${tooLong}`);
    }
    if (owner !== by || lastsMs <= 0 || phase === 'stopped') return;
    const latestMs = seen.firesInMs ?? 0;
    if (latestMs >= lastsMs - TOLERANCE_MS) return;
    const says = `${nameOf(by)} says within ${latestMs.toFixed(0)} ms`;
    blame('1 belief', `${market}: fires in ${lastsMs.toFixed(0)} ms, ${says}`);
  }

  return {
    onTurn(by) {
      const view = by.view();
      for (const seen of view.markets) {
        const truth = truthOf(seen.market);
        if (truth !== undefined && nowMs() >= truth.brokenUntilMs) judge(by, view, seen, truth);
      }
    },
    onChanged(truth) {
      if (nowMs() < truth.brokenUntilMs) return;
      for (const by of running.values()) {
        const view = by.view();
        const seen = view.marketNamed(truth.market);
        // A host that stands still, or slept, reads its clocks first.
        if (seen === undefined || by.clock.isStalled() || by.clock.now().monoMs - view.monoMs > TICK_MS)
          continue;
        judge(by, view, seen, truth);
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

/**
 * Invariants 3 and 6: without rising nonces what ends or shortens a timer is not written while a renewal may still arrive
 * behind it; and in either mode nothing is renewed that is guarded no longer.
 */
export function createStrayJudge({ plan, intents, nowMs, blame }: Court) {
  /** What a daemon wrote for one market to arm its timer. */
  const postOf = perMarket(() => ({
    /** Renewals and trips that the exchange has not got, and when they left; lost ones too, since nobody can tell. */
    onTheWay: new Map<Sent, { readonly purpose: Purpose; readonly leftMs: number }>(),
    /** When the last one left, on the daemon's own clock. */
    lastMonoMs: Number.NEGATIVE_INFINITY,
    /** A stop has written a delete. */
    deletedInStop: false,
  }));
  // A daemon counts from when it decided on a request, which is a little earlier.
  const dangerousMs = REQUEST_LIFETIME_MS - latestDepartureMs(plan);
  const hasNewKey = plan.faults.some(({ kind }) => kind === 'new-key');

  /**
   * Could a renewal of the market still arrive when the budget of the stop ends? A suspend brings that end nearer, and no
   * daemon counts it as time in which the renewal has arrived.
   */
  function hasNoTime(market: string, by: Incarnation): boolean {
    if (plan.nonce !== 'window' || by.stoppingMs === null) return false;
    const dangerMs = postOf(by, market).lastMonoMs + REQUEST_LIFETIME_MS - by.clock.now().monoMs;
    return dangerMs >= by.stoppingMs + WAITS_MS - TOLERANCE_MS - nowMs();
  }

  function judgeEnd({ market }: Truth, by: Incarnation, purpose: 'trip' | 'delete'): void {
    if (plan.nonce !== 'window') return;
    const { onTheWay } = postOf(by, market);
    for (const [sent, { leftMs }] of onTheWay) if (nowMs() - leftMs >= dangerousMs) onTheWay.delete(sent);
    // A trip behind a trip undoes nothing.
    const mayArrive = onTheWay.values().some((one) => one.purpose === 'renew' || purpose === 'delete');
    if (!mayArrive || (purpose === 'delete' && hasNoTime(market, by))) return;
    const said = `wrote a ${purpose} while a renewal could still arrive behind it`;
    const invariant = purpose === 'delete' ? '6 nothing after delete' : '3 bounded kill';
    blame(invariant, `${market}: ${nameOf(by)} ${said}`);
  }

  function judgeRenewal({ market }: Truth, by: Incarnation): void {
    const { intent, guardedSinceMs, deletesUntilMs, tripsUntilMs, movedSinceMs } = intents.of(by, market);
    const policy = plan.daemons[by.daemon]?.policy;
    // A handoff ends with a last renewal, and so does a market that another daemon has by now.
    if (policy === 'handoff' || movedSinceMs !== null) return;
    if (intent === 'lapsed' && nowMs() - guardedSinceMs > plan.roundTripMs + TOLERANCE_MS)
      blame('8 lapses', `${market}: ${nameOf(by)} renewed what a lapse has taken out of guard`);
    // A stop that deletes waits for a sign of life of the bot, and for strays, such as those of another key; it guards the market until its first delete.
    const waits =
      (plan.watched || plan.nonce === 'window' || hasNewKey) &&
      policy === 'delete' &&
      !postOf(by, market).deletedInStop;
    const isEnded = Math.max(deletesUntilMs, tripsUntilMs) === Number.POSITIVE_INFINITY;
    if (isEnded || (by.stoppingMs !== null && !waits))
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
