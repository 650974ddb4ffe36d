import type { Notice } from '../core/notice.ts';
import { slackMs } from '../core/state.ts';
import type { ExchangeEvent } from '../simulator/event-log.ts';
import type { Timeline } from '../simulator/virtual-clock.ts';
import { isUndisturbed } from './disturbance.ts';
import type { Sent } from './network.ts';
import { type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import { GRACE_MS, type Incarnation, TTL_MS } from './world.ts';

/** One broken promise. `invariant` is the number in the design, section 1. */
export interface Violation {
  readonly invariant: string;
  readonly atMs: number;
  readonly text: string;
}

/** Clocks drift, events of one instant have an order: this much is not a violation. */
const TOLERANCE_MS = 20;
const ROUNDING_MS = 1000;

/** What is true of one market, as only the simulation can know it. */
interface Truth {
  readonly market: string;
  readonly timeoutMs: number;
  readonly bot: number;
  /** Whose renewal made the timer that is armed now; null for somebody else's, or where none is armed. */
  owner: Incarnation | null;
  /** True moment at which the armed timer fires; null where none is armed. */
  firesMs: number | null;
  /** cancellationTime of every timer that fired, Unix seconds. */
  readonly fired: number[];
  /** Until here the exchange lied, forgot or was changed by others: belief cannot be sound. */
  brokenUntilMs: number;
  brokenAtMs: number;
}

interface Record_ {
  /** True moment until which each bot's evidence allows renewals. */
  readonly allowedUntilMs: number[];
  /** Last true moment at which the evidence had run out. */
  readonly lastStaleMs: number[];
  readonly deleted: Set<string>;
  readonly left: Set<string>;
  stopped: boolean;
  lastNonce: bigint;
  lastNumber: number;
  readonly nonces: Set<string>;
  readonly writes: number[];
  readonly confirmed: Map<string, { cancellationTime: number; lapses: number }>;
}

export interface Judge {
  readonly violations: readonly Violation[];
  onStart(incarnation: Incarnation): void;
  onStop(incarnation: Incarnation): void;
  onTurn(incarnation: Incarnation): void;
  onNotice(incarnation: Incarnation, notice: Notice): void;
  onEvidence(incarnation: Incarnation, bot: number, says: 'beat' | 'goodbye'): void;
  onWrite(sent: Sent): void;
  onExchange(event: ExchangeEvent, arriving: Sent | null): void;
  /** Null for all markets. */
  onTruthBroken(market: string | null): void;
  onEnd(): void;
}

const MOST_VIOLATIONS = 20;

/** Watches one run and writes down what breaks an invariant. Knows the truth on both sides; changes nothing. */
export function createJudge(world: {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly serverNowMs: () => number;
  readonly toTrueMs: (serverMs: number) => number;
  readonly running: ReadonlyMap<number, Incarnation>;
}): Judge {
  const { plan, timeline, serverNowMs, toTrueMs, running } = world;
  const violations: Violation[] = [];
  const truths = new Map<string, Truth>(
    plan.markets.map(({ market, timeoutSeconds, bot }) => [
      market,
      {
        market,
        timeoutMs: timeoutSeconds * 1000,
        bot,
        owner: null,
        firesMs: null,
        fired: [],
        brokenUntilMs: 0,
        brokenAtMs: Number.NEGATIVE_INFINITY,
      },
    ]),
  );
  const records = new Map<Incarnation, Record_>();
  const current = new Map<number, Incarnation>();
  const alone = plan.daemons.length === 1;
  const foreign = plan.faults.some(({ kind }) =>
    ['actor-deletes', 'actor-changes', 'lie', 'forget-timers', 'server-clock-step'].includes(kind),
  );

  function blame(invariant: string, text: string): void {
    if (violations.length < MOST_VIOLATIONS) violations.push({ invariant, atMs: timeline.nowMs(), text });
  }
  const recordOf = (incarnation: Incarnation) => records.get(incarnation) as Record_;
  const nameOf = ({ daemon, life }: Incarnation) => `daemon ${daemon} (life ${life})`;

  function onTurn(incarnation: Incarnation): void {
    const { state } = incarnation.keeper;
    const nowMs = timeline.nowMs();
    for (const market of state.markets) {
      const truth = truths.get(market.settings.market);
      if (truth === undefined || nowMs < truth.brokenUntilMs) continue;
      const slack = slackMs(state, market);
      if (slack > TOLERANCE_MS && (truth.firesMs === null || truth.firesMs <= nowMs)) {
        blame(
          '1 belief',
          `${truth.market}: ${nameOf(incarnation)} believes it armed for ${slack.toFixed(0)} ms more, and it is not`,
        );
      }
      if (slack > TOLERANCE_MS && truth.firesMs !== null && truth.firesMs < nowMs + slack - TOLERANCE_MS) {
        const lateMs = nowMs + slack - truth.firesMs;
        blame(
          '1 belief',
          `${truth.market}: ${nameOf(incarnation)} believes it armed ${lateMs.toFixed(0)} ms longer than it is`,
        );
      }
      if (truth.owner !== incarnation || truth.firesMs === null || truth.firesMs <= nowMs) continue;
      const { notAfterMs } = market.belief;
      const latestMs = notAfterMs === null ? 0 : notAfterMs - state.now.monoMs;
      if (state.phase.kind !== 'stopped' && latestMs < truth.firesMs - nowMs - TOLERANCE_MS) {
        blame(
          '1 belief',
          `${truth.market}: fires in ${(truth.firesMs - nowMs).toFixed(0)} ms, ${nameOf(incarnation)} says within ${latestMs.toFixed(0)} ms`,
        );
      }
    }
  }

  function onWrite(sent: Sent): void {
    const incarnation = current.get(sent.daemon);
    if (incarnation === undefined || sent.operation === 'ping' || sent.market === null) return;
    const record = recordOf(incarnation);
    const nowMs = timeline.nowMs();
    const body: { nonce: string; timeout: string | null } = JSON.parse(String(sent.request.body));
    const truth = truths.get(sent.market);
    if (truth === undefined) return;
    judgeNonce(incarnation, record, sent.number, body.nonce);
    record.writes.push(nowMs);
    while ((record.writes[0] ?? nowMs) <= nowMs - 10_000) record.writes.shift();
    if (record.writes.length > plan.budgetRequests) {
      blame(
        '10 rate',
        `${nameOf(incarnation)} wrote ${record.writes.length} requests within 10 s, allowed ${plan.budgetRequests}`,
      );
    }
    if (body.timeout === null || !plan.watched) return;
    const isTrip = plan.onStale === 'trip' && body.timeout === '5' && truth.timeoutMs > 5000;
    const lateMs = nowMs - (record.allowedUntilMs[truth.bot] ?? 0);
    if (!isTrip && lateMs > TOLERANCE_MS) {
      blame(
        '4 posthumous renewal',
        `${truth.market}: ${nameOf(incarnation)} renewed ${lateMs.toFixed(0)} ms after the evidence ran out`,
      );
    }
  }

  function judgeNonce(incarnation: Incarnation, record: Record_, number: number, nonce: string): void {
    // A nonce far from the exchange's clock was never accepted: it may be given out again when its time has come.
    if (plan.nonce === 'window' && Math.abs(Number(nonce) - serverNowMs()) > 6000) return;
    // When the exchange's clock steps back, so does the window, over nonces that were used in it.
    if (plan.nonce === 'window' && plan.faults.some(({ kind }) => kind === 'server-clock-step')) return;
    if (record.nonces.has(nonce)) blame('9 nonces', `${nameOf(incarnation)} used ${nonce} twice`);
    record.nonces.add(nonce);
    if (plan.nonce === 'window') return;
    const value = BigInt(nonce);
    if (number > record.lastNumber && value <= record.lastNonce) {
      blame('9 nonces', `${nameOf(incarnation)}: ${nonce} after ${record.lastNonce}`);
    }
    if (number > record.lastNumber) {
      record.lastNumber = number;
      record.lastNonce = value;
    }
  }

  function onExchange(event: ExchangeEvent, arriving: Sent | null): void {
    if (event.kind === 'timer-armed' || event.kind === 'timer-updated') onArmed(event, arriving);
    if (event.kind === 'timer-deleted' || event.kind === 'timer-delete-idle')
      onDeleted(event.market, arriving);
    if (event.kind === 'timer-fired') onFired(event.market, event.cancellationTime);
  }

  function onArmed(
    event: { readonly market: string; readonly timeoutSeconds: number; readonly cancellationTime: number },
    arriving: Sent | null,
  ): void {
    const truth = truths.get(event.market);
    if (truth === undefined) return;
    truth.firesMs = toTrueMs(event.cancellationTime * 1000 + plan.cancellationDelayMs);
    const incarnation = arriving === null ? undefined : current.get(arriving.daemon);
    // Another daemon that shortens the timer is somebody else to those who armed it for longer.
    if (!alone && event.timeoutSeconds * 1000 < truth.timeoutMs) breakTruth(truth);
    truth.owner = incarnation ?? null;
    if (incarnation === undefined) return;
    const record = recordOf(incarnation);
    if (record.deleted.has(event.market)) {
      blame(
        '6 nothing after delete',
        `${event.market}: a renewal of ${nameOf(incarnation)} was carried out after its delete`,
      );
    }
    if (record.stopped && !record.left.has(event.market)) {
      blame(
        '7 unconfirmed delete',
        `${event.market}: ${nameOf(incarnation)} ended saying that no timer is left, and one is`,
      );
    }
    if (!plan.watched || timeline.nowMs() < truth.brokenUntilMs) return;
    const allowedMs = Math.max(
      ...[...records.values()].map(({ allowedUntilMs }) => allowedUntilMs[truth.bot] ?? 0),
    );
    const boundMs =
      allowedMs + REQUEST_LIFETIME_MS + truth.timeoutMs + ROUNDING_MS + plan.cancellationDelayMs;
    if (truth.firesMs > boundMs + TOLERANCE_MS) {
      blame(
        '3 bounded kill',
        `${event.market}: fires ${(truth.firesMs - boundMs).toFixed(0)} ms after the latest moment promised`,
      );
    }
  }

  function onDeleted(market: string, arriving: Sent | null): void {
    const truth = truths.get(market);
    if (truth === undefined) return;
    const incarnation = arriving === null ? undefined : current.get(arriving.daemon);
    truth.firesMs = null;
    truth.owner = null;
    // Another daemon's, or somebody else's, delete is nothing that this one can know of.
    if (incarnation === undefined || !alone) breakTruth(truth);
    if (incarnation === undefined) return;
    const record = recordOf(incarnation);
    record.deleted.add(market);
    const { stoppingMs } = incarnation;
    const policy = plan.daemons[incarnation.daemon]?.policy;
    if (stoppingMs === null || policy !== 'delete') {
      blame(
        '5 delete on purpose',
        `${market}: ${nameOf(incarnation)} deleted a timer that nobody asked it to delete`,
      );
    } else if (plan.watched && !consented(record, truth.bot, stoppingMs)) {
      blame('5 delete on purpose', `${market}: ${nameOf(incarnation)} deleted the timer of a dead bot`);
    }
  }

  const goodbyes = new Map<string, number>();
  function consented(record: Record_, bot: number, stoppingMs: number): boolean {
    return (record.allowedUntilMs[bot] ?? 0) >= stoppingMs - TOLERANCE_MS || goodbyes.has(`${bot}`);
  }

  function onFired(market: string, cancellationTime: number): void {
    const truth = truths.get(market);
    if (truth === undefined) return;
    truth.firesMs = null;
    truth.owner = null;
    truth.fired.push(cancellationTime);
    const nowMs = timeline.nowMs();
    if (nowMs < truth.brokenUntilMs) return;
    for (const incarnation of running.values()) {
      const record = recordOf(incarnation);
      const beganMs = Math.max(
        incarnation.startedMs,
        plan.watched ? (record.lastStaleMs[truth.bot] ?? 0) : 0,
      );
      const fresh = !plan.watched || (record.allowedUntilMs[truth.bot] ?? 0) > nowMs;
      if (incarnation.stoppingMs !== null || !fresh || beganMs > nowMs - truth.timeoutMs - 7000) continue;
      if (record.confirmed.get(market) === undefined) continue;
      if (!isUndisturbed(plan, incarnation, market, truth.timeoutMs, nowMs)) continue;
      blame(
        '2 false lapse',
        `${market}: fired although ${nameOf(incarnation)} ran, its bot lived and no outage was long enough`,
      );
    }
  }

  function onNotice(incarnation: Incarnation, notice: Notice): void {
    const record = recordOf(incarnation);
    if (notice.kind === 'stopped') {
      record.stopped = true;
      for (const { market } of notice.left) record.left.add(market);
      judgeLeft(incarnation, notice);
    }
    if (!alone || foreign) return;
    if (notice.kind === 'suspended' || notice.kind === 'resumed') record.confirmed.delete(notice.market);
    if (notice.kind === 'lapsed') judgeLapse(incarnation, record, notice);
    if (notice.kind === 'renewed') judgeRenewed(incarnation, record, notice);
  }

  function judgeLapse(
    incarnation: Incarnation,
    record: Record_,
    notice: Extract<Notice, { kind: 'lapsed' }>,
  ): void {
    const before = record.confirmed.get(notice.market);
    if (before === undefined) return;
    before.lapses += 1;
    if (before.lapses > 1)
      blame('8 lapses', `${notice.market}: ${nameOf(incarnation)} reported one gap twice`);
    const fired =
      truths.get(notice.market)?.fired.some((moment) => moment >= before.cancellationTime) ?? false;
    if (notice.certainty === 'certain' && !fired) {
      blame('8 lapses', `${notice.market}: ${nameOf(incarnation)} is certain of a lapse that never was`);
    }
  }

  function judgeRenewed(
    incarnation: Incarnation,
    record: Record_,
    notice: Extract<Notice, { kind: 'renewed' }>,
  ): void {
    const truth = truths.get(notice.market);
    const before = record.confirmed.get(notice.market);
    const { cancellationTime } = notice;
    if (truth !== undefined && before !== undefined && before.lapses === 0) {
      const startTime = cancellationTime - truth.timeoutMs / 1000;
      const silent = truth.fired.some((moment) => moment >= before.cancellationTime && moment < startTime);
      if (silent)
        blame(
          '8 lapses',
          `${notice.market}: ${nameOf(incarnation)} armed it again after a lapse and said nothing`,
        );
    }
    record.confirmed.set(notice.market, { cancellationTime, lapses: 0 });
  }

  function judgeLeft(incarnation: Incarnation, notice: Extract<Notice, { kind: 'stopped' }>): void {
    const nowMs = timeline.nowMs();
    const wallMs = incarnation.clock.now().wallMs;
    for (const truth of truths.values()) {
      if (truth.owner !== incarnation || truth.firesMs === null || nowMs < truth.brokenUntilMs) continue;
      const left = notice.left.find(({ market }) => market === truth.market);
      if (left === undefined) {
        blame(
          '7 unconfirmed delete',
          `${truth.market}: ${nameOf(incarnation)} ended without naming the timer that it left`,
        );
      } else if (truth.firesMs - nowMs > left.firesByWallMs - wallMs + TOLERANCE_MS) {
        blame(
          '7 unconfirmed delete',
          `${truth.market}: fires later than ${nameOf(incarnation)} said when it ended`,
        );
      }
    }
  }

  function breakTruth(truth: Truth): void {
    truth.brokenAtMs = timeline.nowMs();
    truth.brokenUntilMs = timeline.nowMs() + 2 * truth.timeoutMs + REQUEST_LIFETIME_MS;
  }

  function onEnd(): void {
    for (const truth of truths.values()) {
      // A lie is found out by the next renewal, not before.
      const foundOutMs = truth.brokenAtMs + truth.timeoutMs / 3 + 15_000;
      if ((truth.firesMs === null || truth.firesMs <= timeline.nowMs()) && timeline.nowMs() > foundOutMs) {
        blame('11 progress', `${truth.market}: not armed at the exchange long after the last fault`);
      }
      for (const incarnation of running.values()) {
        const market = incarnation.keeper.state.byName.get(truth.market);
        if (market === undefined || slackMs(incarnation.keeper.state, market) > 0) continue;
        blame(
          '11 progress',
          `${truth.market}: ${nameOf(incarnation)} does not believe it armed long after the last fault`,
        );
      }
    }
    if (running.size === 0) blame('11 progress', 'no daemon runs at the end');
  }

  return {
    violations,
    onStart(incarnation) {
      current.set(incarnation.daemon, incarnation);
      const graceMs = incarnation.startedMs + GRACE_MS;
      records.set(incarnation, {
        allowedUntilMs: Array.from({ length: plan.bots }, () => graceMs),
        lastStaleMs: Array.from({ length: plan.bots }, () => incarnation.startedMs),
        deleted: new Set(),
        left: new Set(),
        stopped: false,
        lastNonce: 0n,
        lastNumber: -1,
        nonces: new Set(),
        writes: [],
        confirmed: new Map(),
      });
    },
    onStop: () => {},
    onTurn,
    onNotice,
    onEvidence(incarnation, bot, says) {
      const record = recordOf(incarnation);
      const nowMs = timeline.nowMs();
      if ((record.allowedUntilMs[bot] ?? 0) < nowMs) record.lastStaleMs[bot] = nowMs;
      record.allowedUntilMs[bot] = says === 'beat' ? nowMs + TTL_MS : nowMs;
      if (says === 'goodbye') goodbyes.set(`${bot}`, nowMs);
      else goodbyes.delete(`${bot}`);
      if (says === 'goodbye') record.lastStaleMs[bot] = nowMs;
    },
    onWrite,
    onExchange,
    onTruthBroken(market) {
      for (const truth of truths.values()) if (market === null || truth.market === market) breakTruth(truth);
    },
    onEnd,
  };
}
