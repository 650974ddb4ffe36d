import type { CoreSettings, MarketSettings } from '../../src/core/events.ts';
import { createSession, type Session, startSync } from '../../src/exchange/exchange.ts';
import { ping } from '../../src/exchange/operations.ts';
import type { WireResult } from '../../src/exchange/wire.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { Clock, Exchange, Observer } from '../../src/ports.ts';
import { timedOf } from './conditions.ts';
import { GRACE_MS, type Incarnation, type Shared, stopBudgetMs, TTL_MS } from './court.ts';
import { createNetwork, createWireFaults, type Halt, type NetworkOptions } from './network.ts';
import { botName, type Plan, type PlannedDaemon, type PlannedMarket, REQUEST_LIFETIME_MS } from './plan.ts';
import { EPOCH_MS, LIMIT_WINDOW_MS, newKeyOf } from './server.ts';
import { createHostClock } from './virtual-clock.ts';

export interface FleetOptions extends Pick<NetworkOptions, 'plan' | 'timeline' | 'server' | 'judge'> {
  /** The markets as they are configured now, as this daemon sees them. */
  readonly markets: (daemon: number) => Shared;
  /** Tells the daemon and the judge about a changed configuration. */
  readonly reload: (daemon: number) => void;
  readonly running: Map<number, Incarnation>;
  /** A daemon runs: its evidence may begin. */
  readonly onStarted: (incarnation: Incarnation) => void;
  readonly observe: (daemon: number, ...said: Parameters<Observer>) => void;
}

/** What lasts beyond one life of a daemon. */
function createMachine(planned: PlannedDaemon, daemon: number, budgetRequests: number) {
  return {
    daemon,
    planned,
    life: 0,
    /** Name of the API key that is in its file now. */
    key: String(planned.key),
    /** Requests per 10 s that it may write now. */
    budgetRequests,
    /** So long after the end of this life another one begins. */
    restartsInMs: null as number | null,
    /** Its host is to stand still at its next request, until then. */
    halt: null as (Halt & { readonly untilMs: number }) | null,
  };
}
type Machine = ReturnType<typeof createMachine>;

export type Fleet = ReturnType<typeof createFleet>;

/** The daemons of a run: at most one life of each at a time. */
export function createFleet(options: FleetOptions) {
  const { plan, timeline, judge, running } = options;
  const machines = plan.daemons.map((planned, daemon) => createMachine(planned, daemon, plan.budgetRequests));
  const begin = createBeginning(options, (machine) => {
    running.delete(machine.daemon);
    const { restartsInMs } = machine;
    machine.restartsInMs = null;
    if (restartsInMs !== null)
      timeline.at(timeline.nowMs() + restartsInMs, () => fleet.start(machine.daemon));
  });
  const change = (daemon: number, patch: Partial<Machine>) => Object.assign(machines[daemon] ?? {}, patch);

  const fleet = {
    running: running as ReadonlyMap<number, Incarnation>,
    /** Starts the daemon with this index; does nothing where it runs. */
    start(daemon: number): void {
      const machine = machines[daemon];
      if (machine === undefined || running.has(daemon)) return;
      machine.life += 1;
      const host = begin(machine);
      running.set(daemon, host);
      judge.onStart(host);
      host.keeper.onTurn(() => judge.onTurn(host));
      host.keeper.start();
      options.onStarted(host);
    },
    /** Ends it without a word. */
    kill({ clock, daemon }: Incarnation): void {
      clock.kill();
      running.delete(daemon);
    },
    /** SIGTERM. */
    terminate(host: Incarnation): void {
      host.stoppingMs ??= timeline.nowMs();
      void host.keeper.stop(plan.daemons[host.daemon]?.policy ?? 'delete', 'SIGTERM');
    },
    /** SIGTERM, and a new life so long after its end. */
    restart(host: Incarnation, restartsInMs: number): void {
      change(host.daemon, { restartsInMs });
      fleet.terminate(host);
    },
    /** Its key file holds another key from now on. */
    renewKey(daemon: number): void {
      const host = running.get(daemon);
      change(daemon, { key: newKeyOf(daemon) });
      host?.clock.whenRunning(() => host.keeper.credentialsChanged());
    },
    /** A reload gives it another budget, in requests per 10 s. */
    rebudget({ daemon, clock }: Incarnation, budgetRequests: number): void {
      clock.whenRunning(() => {
        change(daemon, { budgetRequests });
        options.reload(daemon);
      });
    },
    /** Until then the next request of this daemon opens a connection, and its host stands still meanwhile. */
    halt: (daemon: number, untilMs: number, halt: Halt) => change(daemon, { halt: { ...halt, untilMs } }),
  };
  return fleet;
}

/** Begins a life of a daemon: the production keeper, core and client over a simulated wire and clock. */
function createBeginning(options: FleetOptions, onEnd: (machine: Machine) => void) {
  const { plan, timeline, server, judge, observe } = options;
  const faults = createWireFaults(plan, timeline.nowMs);
  const bases = Array.from({ length: plan.bases }, (_, index) => `https://simulated-${index}`);

  return (machine: Machine): Incarnation => {
    const { daemon, life, planned } = machine;
    const startedMs = timeline.nowMs();
    const clock = createHostClock(timeline, {
      driftPpm: planned.driftPpm,
      wallMs: EPOCH_MS + startedMs + planned.wallOffsetMs,
    });
    /** For one request; null where it is too late for it. */
    function takeHalt(): Halt | null {
      const { halt } = machine;
      machine.halt = null;
      return halt === null || timeline.nowMs() > halt.untilMs ? null : halt;
    }
    const wire = { plan, timeline, server, judge, faults, bases, clock, daemon, life, takeHalt };
    const session = createSession({
      transport: createNetwork(wire),
      clock,
      credentials: () => ({ key: `key-${machine.key}`, secret: `secret-${machine.key}` }),
      nonce: plan.nonce,
      userAgent: 'simulation',
    });
    const configure = (shared: Shared) => settingsOf(plan, shared, planned, bases, machine.budgetRequests);
    const markets = options.markets(daemon);
    const keeper = createKeeper({
      settings: configure(markets),
      clock,
      exchange: createPort(session, clock, bases),
      observe(notice, now) {
        observe(daemon, notice, now);
        judge.onNotice(host, notice);
        if (notice.kind === 'stopped') onEnd(machine);
      },
    });
    const bots = new Set(markets.own.map(({ bot }) => bot));
    const own = { daemon, life, startedMs, clock, keeper, view: keeper.view };
    const host: Incarnation = { ...own, configure, bots, stoppingMs: null };
    return host;
  };
}

/** The port as `createExchange` builds it, but for the pings: their retries wait on promises, which know no virtual time. */
function createPort(session: Session, clock: Clock, bases: readonly string[]): Exchange {
  const originAt = (base: number) => bases[base] ?? '';
  return {
    sync: (request, settled) => startSync(session, originAt(request.base), request, settled),
    ping(base, timeoutMs, settled) {
      const begunMs = clock.now().monoMs;
      const delivery = { base: originAt(base), fresh: false, mayWrite: () => true };
      const judge = (result: WireResult) => ({
        kind: result.kind === 'response' && result.status === 200 ? 'ok' : 'failed',
      });
      const cancel = session.call(ping, {}, delivery, judge, ({ kind }) => {
        const latencyMs = clock.now().monoMs - begunMs;
        if (kind === 'ok') settled({ ok: true, latencyMs });
        else settled({ ok: false, latencyMs, reason: 'network', detail: 'no pong' });
      });
      clock.after(timeoutMs, cancel);
      return cancel;
    },
  };
}

function settingsOf(
  plan: Plan,
  { own, elsewhere }: Shared,
  planned: PlannedDaemon,
  bases: readonly string[],
  budgetRequests: number,
): CoreSettings {
  return {
    markets: own.map(marketSettings),
    nonce: plan.nonce,
    bases,
    sameAccount: bases.length > 1,
    budget: { requests: budgetRequests, windowMs: LIMIT_WINDOW_MS },
    connections: plan.connections ?? 64,
    liveness: {
      mode: plan.watched ? (plan.evidence ?? 'beat') : 'none',
      ttlMs: TTL_MS,
      startupGraceMs: GRACE_MS,
      onStale: plan.onStale,
    },
    onLapse: plan.onLapse ?? 'rearm',
    shutdown: { policy: planned.policy, budgetMs: stopBudgetMs(plan) },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: plan.cancellationDelayMs,
    requestLifetimeMs: REQUEST_LIFETIME_MS,
    elsewhere,
  };
}

function marketSettings(planned: PlannedMarket): MarketSettings {
  const { market, types, bot } = planned;
  return { market, types, ...timedOf(planned), bot: botName(bot) };
}
