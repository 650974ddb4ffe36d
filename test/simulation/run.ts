import { createBots } from './bots.ts';
import type { Incarnation, Violation } from './court.ts';
import { createFleet, type Fleet } from './hosts.ts';
import { createJudge } from './judge.ts';
import type { NetworkOptions } from './network.ts';
import { createOperators, type Operators } from './operators.ts';
import { type Fault, type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import { createServer, LIMIT_WINDOW_MS, type SimulatedServer } from './server.ts';
import { createTimeline, type Timeline } from './virtual-clock.ts';

export type RunResult = ReturnType<typeof runPlan>;

/** How often a run looks whether it is over. */
const LOOK_MS = 1000;
const RESTART_MS = 2_000;
/** How long everybody may take to be armed after the last fault; longer where a latch must be probed first. */
const HEAL_MS = 15_000;
const HEAL_LATCHES_MS = 80_000;
const WITH_LATCHES: ReadonlySet<FaultKind> = new Set(['unauthorised', 'forbidden', 'bad-request']);
/** Faults that go on after their end: a host wakes up, or is started again. */
const LASTING: ReadonlySet<FaultKind> = new Set(['stall', 'suspend', 'terminate', 'crash', 'restart']);

/**
 * Runs one plan on virtual time: the production core, keeper, signing, nonces, decoding and classifying against the
 * simulated exchange. Faults until `faultyMs`, then none, and everything must be armed again within a bound. A run is a
 * function of its plan, and ends within a simulated second of the first broken promise. `onLine` gets every line of the
 * event log: notices of the daemons and events of the exchange.
 */
export function runPlan(plan: Plan, onLine?: (line: string) => void) {
  const timeline = createTimeline(0);
  const { nowMs } = timeline;
  const running = new Map<number, Incarnation>();
  const server = createServer(plan, timeline);
  const judge = createJudge({ plan, timeline, server, running });
  server.onEvent((event, arriving) => {
    onLine?.(`${nowMs().toFixed(3)} exchange ${JSON.stringify(event)}`);
    judge.onExchange(event, arriving);
  });
  const operators = createOperators(plan, timeline, judge, () => fleet);
  const fleet: Fleet = createFleet({
    plan,
    markets: operators.markets,
    reload: operators.reload,
    timeline,
    server,
    judge,
    running,
    onStarted: (incarnation) => bots.watch(incarnation),
    observe(daemon, notice, now) {
      if (notice.kind === 'held' && notice.why === 'lapsed') operators.onLapsed(notice.market);
      if (onLine === undefined || notice.kind === 'attempt') return;
      onLine(`${nowMs().toFixed(3)} daemon-${daemon} ${now.monoMs.toFixed(3)} ${JSON.stringify(notice)}`);
    },
  });

  for (const [index, { startMs }] of plan.daemons.entries()) timeline.at(startMs, () => fleet.start(index));
  for (const fault of plan.faults)
    timeline.at(fault.atMs, () => STRIKES[fault.kind]?.(world, fault, fleet.running.get(fault.target)));
  const bots = createBots(plan, timeline, fleet, judge);
  const world: World = { plan, timeline, judge, server, fleet, bots, operators };

  /** False where the run is over before that moment. */
  function runUntil(trueMs: number): boolean {
    while (nowMs() < trueMs) {
      if (judge.violation() !== null) return false;
      timeline.runUntil(Math.min(trueMs, nowMs() + LOOK_MS));
    }
    return true;
  }

  function runToTheEnd(): void {
    if (!runUntil(plan.faultyMs)) return;
    // Whatever was on its way may still arrive, hosts wake up, and everybody who should run is started again.
    const settledMs = plan.faultyMs + longestAftermathMs(plan) + REQUEST_LIFETIME_MS + RESTART_MS;
    bots.wake();
    operators.restore();
    if (!runUntil(settledMs)) return;
    for (const index of plan.daemons.keys()) fleet.start(index);
    const hasLatches = plan.faults.some(({ kind }) => WITH_LATCHES.has(kind));
    if (runUntil(settledMs + (hasLatches ? HEAL_LATCHES_MS : HEAL_MS) + queueMs(plan))) judge.onEnd();
  }
  let crash: Violation | null = null;
  try {
    runToTheEnd();
  } catch (error) {
    // It would have ended a process.
    crash = { invariant: 'uncaught error', atMs: nowMs(), text: String(error) };
  }
  return { violation: judge.violation() ?? crash, simulatedMs: nowMs(), requests: judge.requests() };
}

/** A tight budget arms one market after the other, and renews the rest meanwhile. */
function queueMs({ markets, budgetRequests }: Plan): number {
  return Math.floor((((2 * markets.length) / budgetRequests) * LIMIT_WINDOW_MS) / 1000) * 1000;
}

/** A stall or a suspend may begin just before the end of the faulty phase. */
function longestAftermathMs({ faults, faultyMs }: Plan): number {
  const lasting = faults.filter(({ kind }) => LASTING.has(kind));
  return Math.max(0, ...lasting.map(({ atMs, forMs }) => atMs + forMs + RESTART_AFTER_MS - faultyMs));
}

/** How long after a SIGTERM the daemon is started again, beside the length of the fault. */
const RESTART_AFTER_MS = 10_000;
const MEDDLED_SECONDS = 30;

interface World extends Pick<NetworkOptions, 'plan' | 'timeline' | 'server' | 'judge'> {
  readonly fleet: Fleet;
  readonly bots: ReturnType<typeof createBots>;
  readonly operators: Operators;
}

type Strike = (world: World, fault: Fault, host: Incarnation | undefined) => void;

const hold =
  (does: Parameters<Operators['hold']>[1]): Strike =>
  ({ operators }, { target, forMs }) =>
    operators.hold(target, does, forMs);

/** Somebody else deletes the market's timer, or sets one of this length. */
const meddle =
  (seconds: number | null): Strike =>
  ({ plan, judge, server }, { target }) => {
    const market = plan.markets[target]?.market ?? null;
    judge.onTruthBroken(market);
    if (market !== null) server.meddle(market, seconds);
  };

/** The bot is silent for a time, after a last word where it has one. */
const silence =
  (says: 'goodbye' | 'fail' | null, flaps = false): Strike =>
  ({ timeline, bots }, { target, forMs, sizeMs }) => {
    if (says !== null) bots.say(target, says);
    bots.silence(target, timeline.nowMs() + forMs, flaps ? sizeMs : null);
  };

/** Carries out a fault at its moment. Those of the wire have none: they are conditions, and requests ask for them. */
const STRIKES: Partial<Record<FaultKind, Strike>> = {
  'wall-step': (_world, { sizeMs }, host) => host?.clock.stepWall(sizeMs),
  stall: (_world, { forMs }, host) => host?.clock.stall(forMs),
  suspend: (_world, { forMs }, host) => host?.clock.suspend(forMs),
  crash({ timeline, fleet }, { target, forMs }, host) {
    if (host === undefined) return;
    fleet.kill(host);
    timeline.at(timeline.nowMs() + forMs, () => fleet.start(target));
  },
  terminate({ timeline, fleet }, { target, forMs }, host) {
    host?.clock.whenRunning(() => fleet.terminate(host));
    timeline.at(timeline.nowMs() + forMs + RESTART_AFTER_MS, () => fleet.start(target));
  },
  restart({ fleet }, { forMs }, host) {
    if (host?.stoppingMs === null) host.clock.whenRunning(() => fleet.restart(host, forMs));
  },
  'new-key'({ plan, timeline, fleet, server }, { target, forMs }) {
    server.revoke(`key-${plan.daemons[target]?.key}`);
    timeline.at(timeline.nowMs() + forMs, () => fleet.renewKey(target));
  },
  'new-budget'({ plan, timeline, fleet }, { target, forMs, sizeMs }, host) {
    if (host !== undefined) fleet.rebudget(host, sizeMs);
    timeline.at(timeline.nowMs() + forMs, () => {
      const now = fleet.running.get(target);
      if (now !== undefined) fleet.rebudget(now, plan.budgetRequests);
    });
  },
  stutters: ({ timeline, fleet }, { target, forMs, sizeMs }) =>
    stutter(timeline, fleet, target, timeline.nowMs() + forMs, sizeMs),
  'halts-connecting': ({ timeline, fleet }, { target, forMs, share, sizeMs }) =>
    fleet.halt(target, timeline.nowMs() + forMs - sizeMs, { forMs: sizeMs, sleeps: share < 0.5 }),
  'bot-silent': silence(null),
  'bot-goodbye': silence('goodbye'),
  'bot-fails': silence('fail'),
  'bot-flaps': silence(null, true),
  'reload-timeout': ({ operators }, { target, sizeMs }) =>
    operators.changeTimeout(target, Math.round(sizeMs / 1000)),
  'reload-remove': ({ operators }, { target, forMs }) => operators.remove(target, forMs),
  'reload-moves': ({ plan, operators }, { target, forMs, share, sizeMs }) =>
    operators.move(target, keeperOf(plan, share), forMs, sizeMs),
  'operator-pauses': hold('pause'),
  'operator-disarms': hold('disarm'),
  'operator-trips': hold('trip'),
  'actor-deletes': meddle(null),
  'actor-changes': meddle(MEDDLED_SECONDS),
  'server-clock-step'({ judge, server }, { sizeMs }) {
    judge.onTruthBroken(null);
    server.stepClock(sizeMs);
  },
  'forget-timers'({ plan, judge, server }) {
    judge.onTruthBroken(null);
    for (const { market } of plan.markets) server.meddle(market, null);
  },
  neighbour: ({ plan, timeline, server }, fault) =>
    knock(timeline, server, fault, LIMIT_WINDOW_MS / Math.max(1, plan.limitRequests * fault.share)),
};

function stutter(timeline: Timeline, fleet: Fleet, target: number, untilMs: number, sizeMs: number): void {
  if (timeline.nowMs() >= untilMs) return;
  fleet.running.get(target)?.clock.stall(sizeMs);
  timeline.at(timeline.nowMs() + 1.5 * Math.max(1, sizeMs), () =>
    stutter(timeline, fleet, target, untilMs, sizeMs),
  );
}

/** The daemon that keeps a market which moves; one beyond the run where there is only one. */
function keeperOf({ daemons }: Plan, share: number): number {
  return daemons.length === 1 ? 1 : Math.floor(share * daemons.length) % daemons.length;
}

function knock(timeline: Timeline, server: SimulatedServer, fault: Fault, everyMs: number): void {
  server.knock();
  const nextMs = timeline.nowMs() + everyMs;
  if (nextMs < fault.atMs + fault.forMs) timeline.at(nextMs, () => knock(timeline, server, fault, everyMs));
}
