import type { Flaw } from '../core/flaws.ts';
import type { Observer } from '../ports.ts';
import type { Timeline } from '../simulator/virtual-clock.ts';
import { createHost } from './host.ts';
import type { Incarnation, Shared } from './incarnation.ts';
import type { Judge } from './judge.ts';
import type { Halt } from './network.ts';
import type { Plan } from './plan.ts';
import type { Sent } from './sent.ts';
import type { SimulatedServer } from './server.ts';
import { createWireFaults } from './wire-faults.ts';

/** The daemons of a run: at most one life of each at a time. */
export interface Fleet {
  readonly running: ReadonlyMap<number, Incarnation>;
  /** Starts the daemon with this index; does nothing where it runs. */
  start(daemon: number): void;
  /** Ends it without a word. */
  kill(host: Incarnation): void;
  /** SIGTERM. */
  terminate(host: Incarnation): void;
  /** Until then the limiter of this daemon lets nothing through. */
  holdLimiter(daemon: number, untilMs: number): void;
  /** Until then the next request of this daemon opens a connection, and its host stands still meanwhile. */
  readonly halt: (daemon: number, untilMs: number, halt: Halt) => void;
  /** Requests written by all of them. */
  readonly requests: () => number;
}

export interface FleetOptions {
  readonly plan: Plan;
  /** The markets as they are configured now, as this daemon sees them. */
  readonly markets: (daemon: number) => Shared;
  readonly timeline: Timeline;
  readonly server: SimulatedServer;
  readonly judge: Judge;
  readonly running: Map<number, Incarnation>;
  readonly flaw: Flaw | null;
  /** A daemon runs: its evidence may begin. */
  readonly onStarted: (incarnation: Incarnation) => void;
  readonly observe: (daemon: number, ...said: Parameters<Observer>) => void;
}

export function createFleet(options: FleetOptions): Fleet {
  const { plan, timeline, server, judge, running, flaw, observe } = options;
  const faults = createWireFaults(plan, timeline.nowMs);
  const lives = plan.daemons.map(() => 0);
  const stuckUntilMs = plan.daemons.map(() => 0);
  const halts = createHalts(timeline);
  let requests = 0;
  const onWrite = (sent: Sent) => {
    requests += 1;
    judge.onWrite(sent);
  };
  const onArrival = (sent: Sent) => judge.onArrival(sent);
  const onLie = ({ market }: Sent) => judge.onTruthBroken(market);

  return {
    running,
    start(daemon) {
      const planned = plan.daemons[daemon];
      if (planned === undefined || running.has(daemon)) return;
      const life = (lives[daemon] ?? 0) + 1;
      lives[daemon] = life;
      const limiterIsStuck = () => timeline.nowMs() < (stuckUntilMs[daemon] ?? 0);
      const parts = {
        plan,
        markets: options.markets(daemon),
        planned,
        timeline,
        server,
        faults,
        daemon,
        life,
        flaw,
      };
      const host = createHost({
        ...parts,
        limiterIsStuck,
        takeHalt: () => halts.take(daemon),
        onWrite,
        onArrival,
        onLie,
        observe(notice, now) {
          observe(daemon, notice, now);
          judge.onNotice(incarnation, notice);
          if (notice.kind === 'stopped') running.delete(daemon);
        },
      });
      const startedMs = timeline.nowMs();
      const incarnation: Incarnation = { daemon, life, startedMs, ...host, stoppingMs: null };
      running.set(daemon, incarnation);
      judge.onStart(incarnation);
      host.keeper.onTurn(() => judge.onTurn(incarnation));
      host.keeper.start();
      options.onStarted(incarnation);
    },
    kill({ clock, daemon }) {
      clock.kill();
      running.delete(daemon);
    },
    terminate(host) {
      host.stoppingMs ??= timeline.nowMs();
      void host.keeper.stop(plan.daemons[host.daemon]?.policy ?? 'delete', 'SIGTERM');
    },
    holdLimiter(daemon, untilMs) {
      stuckUntilMs[daemon] = Math.max(stuckUntilMs[daemon] ?? 0, untilMs);
    },
    halt: halts.plan,
    requests: () => requests,
  };
}

/** Hosts that are to stand still at their next request; each time is for one request. */
function createHalts({ nowMs }: Timeline) {
  const halts = new Map<number, Halt & { readonly untilMs: number }>();
  return {
    plan: (daemon: number, untilMs: number, halt: Halt): void => {
      halts.set(daemon, { ...halt, untilMs });
    },
    take: (daemon: number): Halt | null => {
      const halt = halts.get(daemon);
      halts.delete(daemon);
      return halt === undefined || nowMs() > halt.untilMs ? null : halt;
    },
  };
}
