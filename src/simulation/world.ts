import type { Flaw } from '../core/flaws.ts';
import { createTimeline } from '../simulator/virtual-clock.ts';
import { createBots } from './bots.ts';
import type { Violation } from './court.ts';
import { createFleet, type Fleet } from './fleet.ts';
import type { Incarnation } from './incarnation.ts';
import { createJudge } from './judge.ts';
import { createOperators } from './operators.ts';
import { type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import { createServer, LIMIT_WINDOW_MS } from './server.ts';
import { RESTART_AFTER_MS, strike } from './strikes.ts';

export interface RunOptions {
  /** Gets every line of the event log, in order: notices of the daemons and events of the exchange. */
  readonly onLine?: (line: string) => void;
  /** A known bug to plant, for the canaries. */
  readonly flaw?: Flaw | null;
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
const LASTING: ReadonlySet<FaultKind> = new Set(['stall', 'suspend', 'terminate', 'crash']);

/**
 * Runs one plan on virtual time: the production core, keeper, signing, nonces, decoding and classifying against the
 * simulated exchange. Faults until `faultyMs`, then none, and everything must be armed again within a bound. A run is a
 * function of its plan.
 */
export function runPlan(plan: Plan, options: RunOptions = {}): RunResult {
  const { onLine, flaw = null } = options;
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
    timeline,
    server,
    judge,
    running,
    flaw,
    onStarted: (incarnation) => bots.watch(incarnation),
    observe(daemon, notice, now) {
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
