import type { Purpose } from '../../src/core/events.ts';
import type { Notice } from '../../src/core/notice.ts';
import type { MarketView } from '../../src/core/view.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { EventBody, ExchangeEvent } from '../../src/simulator/event-log.ts';
import { coreSettings } from '../core/core-settings.ts';
import type { Incarnation, Sent } from './court.ts';
import { createJudge } from './judge.ts';
import type { Plan } from './plan.ts';
import { createHostClock, createTimeline } from './virtual-clock.ts';

type NoticeOf<Kind extends Notice['kind']> = Extract<Notice, { kind: Kind }>;

interface Belief {
  readonly armedUntilMs: number | null;
  readonly firesByMs: number | null;
  readonly inFlight: readonly Purpose[];
}
const NOTHING: Belief = { armedUntilMs: null, firesByMs: null, inFlight: [] };

/**
 * A judge in a world made by hand: nothing happens but what a test says. The exchange's clock shows the moment of the
 * run, so that true milliseconds are a thousand times its seconds. Every planned daemon has begun its first life at 0.
 */
export function createCourtroom(plan: Plan) {
  const timeline = createTimeline(0);
  const running = new Map<number, Incarnation>();
  const judge = createJudge({
    plan,
    nowMs: timeline.nowMs,
    serverNowMs: timeline.nowMs,
    toTrueMs: (serverMs) => serverMs,
    running,
  });
  let number = 0;
  const beliefs = new Map<string, Belief>();
  const beliefOf = (market: string): Belief => beliefs.get(market) ?? NOTHING;
  const leftMs = (moment: number | null) => (moment === null ? null : moment - timeline.nowMs());
  function seen(market: string): MarketView {
    const { armedUntilMs, firesByMs, inFlight } = beliefOf(market);
    const guaranteedMs = leftMs(armedUntilMs);
    return {
      market,
      wanted: true,
      refused: false,
      inFlight: inFlight.map((purpose) => ({ purpose })),
      guaranteedMs: guaranteedMs !== null && guaranteedMs > 0 ? guaranteedMs : null,
      firesInMs: leftMs(firesByMs),
    };
  }

  function begin(daemon: number, life = 1): Incarnation {
    const clock = createHostClock(timeline);
    const settings = coreSettings({
      markets: plan.markets.map(
        ({ market, timeoutSeconds, bot }) => `${market}:${timeoutSeconds}:bot-${bot}`,
      ),
    });
    const exchange = { sync: () => () => {}, ping: () => () => {} };
    const keeper = createKeeper({ settings, clock, exchange, observe: () => {} });
    const begun: Incarnation = {
      daemon,
      life,
      startedMs: timeline.nowMs(),
      clock,
      keeper,
      bots: new Set([0, 1]),
      view: () => ({
        phase: 'running',
        monoMs: clock.now().monoMs,
        markets: plan.markets.map(({ market }) => seen(market)),
        marketNamed: seen,
      }),
      configure: () => settings,
      stoppingMs: null,
    };
    running.set(daemon, begun);
    judge.onStart(begun);
    return begun;
  }
  for (const daemon of plan.daemons.keys()) begin(daemon);

  /** A request of the first market, unless told otherwise. */
  function sent(timeoutSeconds: number | null, more: Partial<Sent> & { readonly nonce?: string } = {}): Sent {
    number += 1;
    const { nonce = String(number), ...rest } = more;
    const request = { method: 'POST', path: '', headers: {}, body: '' };
    const market = plan.markets[0]?.market ?? null;
    const order = { nonce, timeoutSeconds };
    return {
      daemon: 0,
      life: 1,
      base: 0,
      market,
      order,
      request,
      number,
      nth: number,
      fresh: false,
      ...rest,
    };
  }
  const exchange = (event: EventBody, by: Sent | null) =>
    judge.onExchange({ ...event, seq: 1, atMs: timeline.nowMs() }, by);
  function armed(timeoutSeconds: number) {
    const startTime = Math.floor(timeline.nowMs() / 1000);
    const cancellationTime = startTime + timeoutSeconds;
    const timer = { market: name, timeoutSeconds, startTime, cancellationTime, types: null };
    return { kind: 'timer-armed', account: 'main', ...timer } as const;
  }
  const first = () => running.get(0) as Incarnation;
  const name = plan.markets[0]?.market ?? '';

  return {
    judge,
    running,
    begin,
    sent,
    nowMs: timeline.nowMs,
    first,
    /** What was found wrong, as `invariant: sentence`. */
    findings: () => judge.violations.map(({ invariant, text }) => `${invariant}: ${text}`),
    pass: (byMs: number) => timeline.runUntil(timeline.nowMs() + byMs),
    beat: (bot = 0) => {
      judge.onEvidence(first(), bot, 'beat', timeline.nowMs());
      judge.onBack(first(), bot);
    },
    says: (says: 'goodbye' | 'fail', bot = 0) => judge.onEvidence(first(), bot, says, timeline.nowMs()),
    /** The daemon believes so of the first market, or of another one, until told otherwise; moments of the run. */
    believe: (belief: Partial<Belief>, market = name) =>
      beliefs.set(market, { ...beliefOf(market), ...belief }),
    /** The exchange carries a renewal out. */
    arm(timeoutSeconds: number, by: Sent | null = sent(timeoutSeconds)) {
      const event = armed(timeoutSeconds);
      exchange(event, by);
      return event.cancellationTime;
    },
    /** The same, as an event that the judge takes note of. */
    armed(timeoutSeconds: number): ExchangeEvent {
      const event = armed(timeoutSeconds);
      exchange(event, sent(timeoutSeconds));
      return { ...event, seq: 1, atMs: timeline.nowMs() };
    },
    delete: (by: Sent | null = sent(null)) =>
      exchange({ kind: 'timer-deleted', account: 'main', market: name, cancellationTime: 0 }, by),
    fire: (cancellationTime: number) =>
      exchange(
        {
          kind: 'timer-fired',
          account: 'main',
          market: name,
          cancellationTime,
          types: null,
          cancelledOrders: 0,
        },
        null,
      ),
    renewed: (cancellationTime: number, market = name) =>
      judge.onNotice(first(), {
        kind: 'renewed',
        market,
        durationMs: 20,
        cycleMs: 20,
        slackRatio: null,
        first: true,
        cancellationTime,
        expiryWallMs: 0,
        skewMs: 0,
      }),
    lapsed: (certainty: NoticeOf<'lapsed'>['certainty']) =>
      judge.onNotice(first(), {
        kind: 'lapsed',
        market: name,
        certainty,
        gapMs: 0,
        unresolved: 0,
        rearms: true,
        held: false,
      }),
    stopped: (left: NoticeOf<'stopped'>['left'] = []) => judge.onNotice(first(), { kind: 'stopped', left }),
    notice: (notice: Notice) => judge.onNotice(first(), notice),
    /** The daemon decides on a request of the first market, or of another one. */
    decided: (purpose: NoticeOf<'attempt'>['purpose'] = 'renew', delayMs = 0, market = name) =>
      judge.onNotice(first(), { kind: 'attempt', market, purpose, base: 0, delayMs }),
  };
}
