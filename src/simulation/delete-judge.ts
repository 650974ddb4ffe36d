import type { Notice } from '../core/notice.ts';
import { type Court, TOLERANCE_MS } from './court.ts';
import { type Incarnation, nameOf } from './incarnation.ts';
import type { Truth } from './truth.ts';

interface Doings {
  /** Markets whose timers it deleted at the exchange. */
  readonly deleted: Set<string>;
  /** Markets whose timers it said it left, once it has ended. */
  left: ReadonlySet<string> | null;
}

/** Invariants 5 to 7: deletes only on purpose, nothing after them, and what they did not reach is named. */
export function createDeleteJudge(court: Court) {
  const { plan, evidence, blame } = court;
  const byIncarnation = new Map<Incarnation, Doings>();

  function doingsOf(incarnation: Incarnation): Doings {
    const known = byIncarnation.get(incarnation);
    if (known !== undefined) return known;
    const doings: Doings = { deleted: new Set(), left: null };
    byIncarnation.set(incarnation, doings);
    return doings;
  }

  return {
    /** A delete's first byte leaves. */
    onWrite(truth: Truth, by: Incarnation): void {
      const inFlight = by.keeper.state.byName.get(truth.market)?.inFlight ?? [];
      if (inFlight.every(({ purpose }) => purpose === 'delete')) return;
      blame(
        '6 nothing after delete',
        `${truth.market}: ${nameOf(by)} wrote a delete beside a renewal in flight`,
      );
    },
    /** The exchange carried a renewal of this daemon out. */
    onArmed(truth: Truth, by: Incarnation): void {
      const { deleted, left } = doingsOf(by);
      if (deleted.has(truth.market)) {
        blame(
          '6 nothing after delete',
          `${truth.market}: a renewal of ${nameOf(by)} was carried out after its delete`,
        );
      }
      if (left !== null && !left.has(truth.market)) {
        blame(
          '7 unconfirmed delete',
          `${truth.market}: ${nameOf(by)} ended saying that no timer is left, and one is`,
        );
      }
    },
    /** The exchange carried a delete of this daemon out. */
    onDeleted(truth: Truth, by: Incarnation): void {
      doingsOf(by).deleted.add(truth.market);
      const { stoppingMs } = by;
      if (stoppingMs === null || plan.daemons[by.daemon]?.policy !== 'delete') {
        blame(
          '5 delete on purpose',
          `${truth.market}: ${nameOf(by)} deleted a timer that nobody asked it to delete`,
        );
        return;
      }
      const lived = evidence.allowedUntilMs(by, truth.bot) >= stoppingMs - TOLERANCE_MS;
      if (lived || evidence.saidGoodbye(truth.bot)) return;
      blame('5 delete on purpose', `${truth.market}: ${nameOf(by)} deleted the timer of a dead bot`);
    },
    /** The daemon ended and said what it leaves. */
    onStopped(incarnation: Incarnation, { left }: Extract<Notice, { kind: 'stopped' }>): void {
      doingsOf(incarnation).left = new Set(left.map(({ market }) => market));
      judgeLeft(court, incarnation, left);
    },
  };
}

/** What a stop left must be named, with the latest moment at which it fires. */
function judgeLeft(
  { truths, nowMs, blame }: Court,
  incarnation: Incarnation,
  left: Extract<Notice, { kind: 'stopped' }>['left'],
): void {
  const name = nameOf(incarnation);
  const { wallMs } = incarnation.clock.now();
  for (const { market, owner, firesMs, brokenUntilMs } of truths) {
    if (owner !== incarnation || firesMs === null || nowMs() < brokenUntilMs) continue;
    const said = left.find((one) => one.market === market);
    if (said === undefined) {
      blame('7 unconfirmed delete', `${market}: ${name} ended without naming the timer that it left`);
    } else if (firesMs - nowMs() > said.firesByWallMs - wallMs + TOLERANCE_MS) {
      blame('7 unconfirmed delete', `${market}: fires later than ${name} said when it ended`);
    }
  }
}
