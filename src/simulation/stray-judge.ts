import type { Purpose } from '../core/events.ts';
import { type Court, TOLERANCE_MS } from './court.ts';
import { latestDepartureMs } from './departure-judge.ts';
import { BUDGET_MS, type Incarnation, nameOf } from './incarnation.ts';
import { REQUEST_LIFETIME_MS } from './plan.ts';
import type { Sent } from './sent.ts';
import type { Truth } from './truth.ts';

/** So much of a stop's budget goes by waiting for strays, and no more: what is left is for the delete. */
const WAITS_MS = BUDGET_MS - 1000;

/** What a daemon wrote for one market to arm its timer. True milliseconds. */
interface Post {
  /** Renewals, and when they left, that the exchange has not got; lost ones too, since nobody can tell. */
  readonly onTheWay: Map<Sent, number>;
  lastMs: number;
}

/**
 * Invariants 3 and 6: without rising nonces what ends or shortens a timer is not written while a renewal may still arrive
 * behind it; and in either mode nothing is renewed that is guarded no longer.
 */
export function createStrayJudge(court: Court) {
  const { plan, intents, nowMs, blame } = court;
  const posts = new Map<Incarnation, Map<string, Post>>();
  // A daemon counts from when it decided on a request, which is a little earlier.
  const dangerousMs = REQUEST_LIFETIME_MS - latestDepartureMs(plan);

  function postOf(by: Incarnation, market: string): Post {
    const own = posts.get(by) ?? new Map<string, Post>();
    posts.set(by, own);
    const post = own.get(market) ?? { onTheWay: new Map<Sent, number>(), lastMs: Number.NEGATIVE_INFINITY };
    own.set(market, post);
    return post;
  }

  /** Could a renewal of the market still arrive when the budget of the stop ends, which comes nearer in a suspend? */
  function hasNoTime(market: string, by: Incarnation): boolean {
    if (plan.nonce !== 'window' || by.stoppingMs === null) return false;
    if (plan.faults.some(({ kind }) => kind === 'suspend')) return true;
    const untilMs = postOf(by, market).lastMs + REQUEST_LIFETIME_MS;
    return untilMs >= by.stoppingMs + WAITS_MS - TOLERANCE_MS;
  }

  function mayArrive({ onTheWay }: Post): boolean {
    for (const [sent, leftMs] of onTheWay) {
      if (nowMs() - leftMs < dangerousMs) return true;
      onTheWay.delete(sent);
    }
    return false;
  }

  function judgeEnd(truth: Truth, by: Incarnation, purpose: 'trip' | 'delete'): void {
    if (plan.nonce !== 'window' || !mayArrive(postOf(by, truth.market))) return;
    if (purpose === 'delete' && hasNoTime(truth.market, by)) return;
    const invariant = purpose === 'delete' ? '6 nothing after delete' : '3 bounded kill';
    blame(
      invariant,
      `${truth.market}: ${nameOf(by)} wrote a ${purpose} while a renewal could still arrive behind it`,
    );
  }

  function judgeRenewal({ market }: Truth, by: Incarnation): void {
    // A handoff ends with a last renewal, and so does a market that another daemon has by now.
    if (plan.daemons[by.daemon]?.policy === 'handoff' || intents.isMoved(by, market)) return;
    const ends = Math.max(intents.deletesUntilMs(by, market), intents.tripsUntilMs(by, market));
    if (by.stoppingMs === null && ends < Number.POSITIVE_INFINITY) return;
    blame('6 nothing after delete', `${market}: ${nameOf(by)} renewed what it guards no longer`);
  }

  return {
    hasNoTime,
    /** A request's first byte leaves. */
    onWrite(truth: Truth, by: Incarnation, sent: Sent, purpose: Purpose): void {
      if (purpose === 'renew') judgeRenewal(truth, by);
      else judgeEnd(truth, by, purpose);
      if (purpose === 'delete') return;
      const post = postOf(by, truth.market);
      post.onTheWay.set(sent, nowMs());
      post.lastMs = nowMs();
    },
    /** It has reached the exchange, or what stands before it. */
    onArrival: (by: Incarnation, market: string, sent: Sent): boolean =>
      postOf(by, market).onTheWay.delete(sent),
  };
}
