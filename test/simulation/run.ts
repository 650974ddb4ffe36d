import { type Bots, createBots } from './bots.ts';
import type { Incarnation, Violation } from './court.ts';
import { createFleet, type Fleet } from './hosts.ts';
import { createJudge, type Judge } from './judge.ts';
import { createOperators, type Operators } from './operators.ts';
import { FAULTS, type Fault, type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import { createServer, LIMIT_WINDOW_MS, type SimulatedServer } from './server.ts';
import { createTimeline, type Timeline } from './virtual-clock.ts';

export interface RunOptions {
  /** Gets every line of the event log, in order: notices of the daemons and events of the exchange. */
  readonly onLine?: (line: string) => void;
}

export interface RunResult {
  readonly violations: readonly Violation[];
  readonly simulatedMs: number;
  readonly requests: number;
}

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
 * function of its plan.
 */
export function runPlan(plan: Plan, options: RunOptions = {}): RunResult {
  const { onLine } = options;
  const timeline = createTimeline(0);
  const { nowMs } = timeline;
  const running = new Map<number, Incarnation>();
  const server = createServer(plan, timeline);
  const judge = createJudge({
    plan,
    nowMs,
    serverNowMs: server.nowMs,
    toTrueMs: server.toTrueMs,
    running,
  });
  server.onEvent((event, arriving) => {
    onLine?.(`${nowMs().toFixed(3)} exchange ${JSON.stringify(event)}`);
    judge.onExchange(event, arriving);
    judge.onChanged(event);
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
    timeline.at(fault.atMs, () => strike({ plan, timeline, judge, server, fleet, bots, operators }, fault));
  const bots = createBots(plan, timeline, fleet, judge);

  function runToTheEnd(): void {
    timeline.runUntil(plan.faultyMs);
    // Whatever was on its way may still arrive, hosts wake up, and everybody who should run is started again.
    const settledMs = plan.faultyMs + longestAftermathMs(plan) + REQUEST_LIFETIME_MS + RESTART_MS;
    bots.wake();
    operators.restore();
    timeline.runUntil(settledMs);
    for (const index of plan.daemons.keys()) fleet.start(index);
    const hasLatches = plan.faults.some(({ kind }) => WITH_LATCHES.has(kind));
    timeline.runUntil(settledMs + (hasLatches ? HEAL_LATCHES_MS : HEAL_MS) + queueMs(plan));
    judge.onEnd();
  }
  const uncaught = errorOf(runToTheEnd);
  const crash =
    uncaught === null ? [] : [{ invariant: 'uncaught error', atMs: nowMs(), text: uncaught } as const];
  return {
    violations: [...judge.violations, ...crash],
    simulatedMs: nowMs(),
    requests: fleet.requests(),
  };
}

/** What an error says that would have ended a process; null where there was none. */
function errorOf(run: () => void): string | null {
  try {
    run();
    return null;
  } catch (error) {
    return String(error);
  }
}

/** A tight budget arms one market after the other, and renews the rest meanwhile. */
function queueMs({ markets, budgetRequests }: Plan): number {
  return Math.floor((((2 * markets.length) / budgetRequests) * LIMIT_WINDOW_MS) / 1000) * 1000;
}

/** A stall or a suspend may begin just before the end of the faulty phase. */
function longestAftermathMs({ faults, faultyMs }: Plan): number {
  return faults.reduce(
    (most, { kind, atMs, forMs }) =>
      LASTING.has(kind) ? Math.max(most, atMs + forMs + RESTART_AFTER_MS - faultyMs) : most,
    0,
  );
}

/** How long after a SIGTERM the daemon is started again, beside the length of the fault. */
const RESTART_AFTER_MS = 10_000;
const MEDDLED_SECONDS = 30;

interface Struck {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly judge: Judge;
  readonly server: SimulatedServer;
  readonly fleet: Fleet;
  readonly bots: Bots;
  readonly operators: Operators;
}

/** Carries out a fault at its moment. Those of the wire are conditions: requests ask for them. */
function strike(world: Struck, fault: Fault): void {
  switch (FAULTS[fault.kind]) {
    case 'daemon':
      strikeDaemon(world, fault);
      break;
    case 'bot':
      strikeBot(world, fault);
      break;
    case 'market':
      strikeMarket(world, fault);
      strikeExchange(world, fault);
      break;
    case 'exchange':
      strikeExchange(world, fault);
      break;
    case 'requests':
    case 'base':
      break;
  }
}

function strikeDaemon(
  { plan, timeline, fleet, server }: Struck,
  { kind, target, forMs, share, sizeMs }: Fault,
): void {
  const host = fleet.running.get(target);
  switch (kind) {
    case 'wall-step':
      host?.clock.stepWall(sizeMs);
      break;
    case 'stall':
      host?.clock.stall(forMs);
      break;
    case 'suspend':
      host?.clock.suspend(forMs);
      break;
    case 'crash':
      if (host === undefined) break;
      fleet.kill(host);
      timeline.at(timeline.nowMs() + forMs, () => fleet.start(target));
      break;
    case 'terminate':
      if (host !== undefined) host.clock.whenRunning(() => fleet.terminate(host));
      timeline.at(timeline.nowMs() + forMs + RESTART_AFTER_MS, () => fleet.start(target));
      break;
    case 'restart':
      if (host !== undefined && host.stoppingMs === null)
        host.clock.whenRunning(() => fleet.restart(host, forMs));
      break;
    case 'new-key':
      server.revoke(`key-${plan.daemons[target]?.key}`);
      timeline.at(timeline.nowMs() + forMs, () => fleet.renewKey(target));
      break;
    case 'new-budget':
      if (host !== undefined) fleet.rebudget(host, sizeMs);
      timeline.at(timeline.nowMs() + forMs, () => {
        const now = fleet.running.get(target);
        if (now !== undefined) fleet.rebudget(now, plan.budgetRequests);
      });
      break;
    case 'stutters':
      stutter(timeline, fleet, target, timeline.nowMs() + forMs, sizeMs);
      break;
    case 'halts-connecting':
      fleet.halt(target, timeline.nowMs() + forMs - sizeMs, { forMs: sizeMs, sleeps: share < 0.5 });
      break;
    default:
      break;
  }
}

function stutter(timeline: Timeline, fleet: Fleet, target: number, untilMs: number, sizeMs: number): void {
  if (timeline.nowMs() >= untilMs) return;
  fleet.running.get(target)?.clock.stall(sizeMs);
  timeline.at(timeline.nowMs() + 1.5 * Math.max(1, sizeMs), () =>
    stutter(timeline, fleet, target, untilMs, sizeMs),
  );
}

function strikeBot({ timeline, bots }: Struck, { kind, target, forMs, sizeMs }: Fault): void {
  if (kind === 'bot-goodbye') bots.say(target, 'goodbye');
  if (kind === 'bot-fails') bots.say(target, 'fail');
  bots.silence(target, timeline.nowMs() + forMs, kind === 'bot-flaps' ? sizeMs : null);
}

/** The daemon that keeps a market which moves; one beyond the run where there is only one. */
function keeperOf({ daemons }: Plan, share: number): number {
  return daemons.length === 1 ? 1 : Math.floor(share * daemons.length) % daemons.length;
}

function strikeMarket({ plan, operators }: Struck, { kind, target, forMs, share, sizeMs }: Fault): void {
  switch (kind) {
    case 'reload-timeout':
      operators.changeTimeout(target, Math.round(sizeMs / 1000));
      break;
    case 'reload-remove':
      operators.remove(target, forMs);
      break;
    case 'reload-moves':
      operators.move(target, keeperOf(plan, share), forMs, sizeMs);
      break;
    case 'operator-pauses':
      operators.hold(target, 'pause', forMs);
      break;
    case 'operator-disarms':
      operators.hold(target, 'disarm', forMs);
      break;
    case 'operator-trips':
      operators.hold(target, 'trip', forMs);
      break;
    default:
  }
}

function strikeExchange({ plan, timeline, judge, server }: Struck, fault: Fault): void {
  const market = plan.markets[fault.target]?.market ?? null;
  switch (fault.kind) {
    case 'server-clock-step':
      judge.onTruthBroken(null);
      server.stepClock(fault.sizeMs);
      break;
    case 'forget-timers':
      judge.onTruthBroken(null);
      for (const { market: name } of plan.markets) server.meddle(name, null);
      break;
    case 'actor-deletes':
    case 'actor-changes':
      judge.onTruthBroken(market);
      if (market !== null) server.meddle(market, fault.kind === 'actor-deletes' ? null : MEDDLED_SECONDS);
      break;
    case 'neighbour':
      knock(timeline, server, fault, LIMIT_WINDOW_MS / Math.max(1, plan.limitRequests * fault.share));
      break;
    default:
      break;
  }
}

function knock(timeline: Timeline, server: SimulatedServer, fault: Fault, everyMs: number): void {
  server.knock();
  const nextMs = timeline.nowMs() + everyMs;
  if (nextMs < fault.atMs + fault.forMs) timeline.at(nextMs, () => knock(timeline, server, fault, everyMs));
}
