import type { CoreSettings, MarketSettings } from '../../src/core/events.ts';
import { createSession, type Session, startSync } from '../../src/exchange/exchange.ts';
import { ping } from '../../src/exchange/operations.ts';
import { createKeeper } from '../../src/keeper.ts';
import type { Clock, Exchange, Observer } from '../../src/ports.ts';
import { BUDGET_MS, GRACE_MS, type Incarnation, type Sent, type Shared, TTL_MS } from './court.ts';
import type { Judge } from './judge.ts';
import { createNetwork, createWireFaults, type Halt, type NetworkOptions } from './network.ts';
import { botName, type Plan, type PlannedDaemon, type PlannedMarket, REQUEST_LIFETIME_MS } from './plan.ts';
import { EPOCH_MS, LIMIT_WINDOW_MS, newKeyOf, type SimulatedServer } from './server.ts';
import { createHostClock, type Timeline } from './virtual-clock.ts';

export interface HostOptions extends Omit<NetworkOptions, 'clock' | 'bases' | 'roundTripMs'> {
  readonly plan: Plan;
  /** Requests per 10 s that the daemon may write now. */
  readonly budgetRequests: () => number;
  /** The markets as they are configured when the daemon starts. */
  readonly markets: Shared;
  readonly planned: PlannedDaemon;
  /** Name of the API key that is in its file now. */
  readonly key: () => string;
  readonly observe: Observer;
}

/** A host with one daemon on it: the production keeper, core and client over a simulated wire and clock. */
export function createHost(
  options: HostOptions,
): Pick<Incarnation, 'clock' | 'keeper' | 'view' | 'configure'> {
  const { plan, planned, timeline, observe } = options;
  const bases = Array.from({ length: plan.bases }, (_, index) => `https://simulated-${index}`);
  const clock = createHostClock(timeline, {
    driftPpm: planned.driftPpm,
    wallMs: EPOCH_MS + timeline.nowMs() + planned.wallOffsetMs,
  });
  const session = createSession({
    transport: createNetwork({ ...options, clock, bases, roundTripMs: plan.roundTripMs }),
    clock,
    credentials: () => ({ key: `key-${options.key()}`, secret: `secret-${options.key()}` }),
    nonce: plan.nonce,
    userAgent: 'simulation',
  });
  const configure = (markets: Shared) => settingsOf(plan, markets, planned, bases, options.budgetRequests());
  const exchange = createPort(session, clock, bases);
  const keeper = createKeeper({ settings: configure(options.markets), clock, exchange, observe });
  return { clock, configure, keeper, view: keeper.view };
}

/** The port as `createExchange` builds it, but for the pings: their retries wait on promises, which know no virtual time. */
function createPort(session: Session, clock: Clock, bases: readonly string[]): Exchange {
  const originAt = (base: number) => bases[base] ?? '';
  return {
    sync: (request, settled) => startSync(session, originAt(request.base), request, settled),
    ping(base, timeoutMs, settled) {
      const begunMs = clock.now().monoMs;
      const cancel = session.call(
        ping,
        {},
        { base: originAt(base), fresh: false, mayWrite: () => true },
        (result) =>
          ({ kind: result.kind === 'response' && result.status === 200 ? 'ok' : 'failed' }) as const,
        ({ kind }) => {
          const latencyMs = clock.now().monoMs - begunMs;
          if (kind === 'ok') settled({ ok: true, latencyMs });
          else settled({ ok: false, latencyMs, reason: 'network', detail: 'no pong' });
        },
      );
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
    connections: 64,
    liveness: {
      mode: plan.watched ? (plan.evidence ?? 'beat') : 'none',
      ttlMs: TTL_MS,
      startupGraceMs: GRACE_MS,
      onStale: plan.onStale,
    },
    onLapse: plan.onLapse ?? 'rearm',
    shutdown: { policy: planned.policy, budgetMs: BUDGET_MS },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: plan.cancellationDelayMs,
    requestLifetimeMs: REQUEST_LIFETIME_MS,
    movedAway: elsewhere.map(({ market }) => market),
  };
}

function marketSettings({
  market,
  timeoutSeconds,
  types,
  bot,
  renewEverySeconds,
}: PlannedMarket): MarketSettings {
  const renewEveryMs = renewEverySeconds === undefined ? null : renewEverySeconds * 1000;
  return { market, timeoutMs: timeoutSeconds * 1000, types, renewEveryMs, bot: botName(bot) };
}

export interface FleetOptions {
  readonly plan: Plan;
  /** The markets as they are configured now, as this daemon sees them. */
  readonly markets: (daemon: number) => Shared;
  /** Tells the daemon and the judge about a changed configuration. */
  readonly reload: (daemon: number) => void;
  readonly timeline: Timeline;
  readonly server: SimulatedServer;
  readonly judge: Judge;
  readonly running: Map<number, Incarnation>;
  /** A daemon runs: its evidence may begin. */
  readonly onStarted: (incarnation: Incarnation) => void;
  readonly observe: (daemon: number, ...said: Parameters<Observer>) => void;
}

export type Fleet = ReturnType<typeof createFleet>;

/** The daemons of a run: at most one life of each at a time. */
export function createFleet(options: FleetOptions) {
  const { plan, timeline, server, judge, running, observe } = options;
  const faults = createWireFaults(plan, timeline.nowMs);
  const lives = plan.daemons.map(() => 0);
  /** What each daemon finds in its key file. */
  const keys = plan.daemons.map(({ key }) => String(key));
  const budgets = plan.daemons.map(() => plan.budgetRequests);
  const restartsInMs = new Map<number, number>();
  const halts = createHalts(timeline);
  let requests = 0;
  const wire = {
    onWrite(sent: Sent): void {
      requests += 1;
      judge.onWrite(sent);
    },
    onSettled: (sent: Sent) => judge.onSettled(sent),
    onArrival: (sent: Sent) => judge.onArrival(sent),
    onCut: ({ market }: Sent) => judge.onCut(market ?? ''),
    onLie: ({ market }: Sent) => judge.onTruthBroken(market),
  };

  const fleet = {
    running: running as ReadonlyMap<number, Incarnation>,
    /** Starts the daemon with this index; does nothing where it runs. */
    start(daemon: number): void {
      const planned = plan.daemons[daemon];
      if (planned === undefined || running.has(daemon)) return;
      const life = (lives[daemon] ?? 0) + 1;
      lives[daemon] = life;
      const markets = options.markets(daemon);
      const parts = { plan, markets, planned, timeline, server, faults, daemon, life };
      const host = createHost({
        ...parts,
        key: () => keys[daemon] ?? '',
        budgetRequests: () => budgets[daemon] ?? plan.budgetRequests,
        takeHalt: () => halts.take(daemon),
        ...wire,
        observe(notice, now) {
          observe(daemon, notice, now);
          judge.onNotice(incarnation, notice);
          if (notice.kind !== 'stopped') return;
          running.delete(daemon);
          const inMs = restartsInMs.get(daemon);
          restartsInMs.delete(daemon);
          if (inMs !== undefined) timeline.at(timeline.nowMs() + inMs, () => fleet.start(daemon));
        },
      });
      const startedMs = timeline.nowMs();
      const bots = new Set(markets.own.map(({ bot }) => bot));
      const incarnation: Incarnation = { daemon, life, startedMs, ...host, bots, stoppingMs: null };
      running.set(daemon, incarnation);
      judge.onStart(incarnation);
      host.keeper.onTurn(() => judge.onTurn(incarnation));
      host.keeper.start();
      options.onStarted(incarnation);
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
    /** SIGTERM, and a new life so long after the end of this one. */
    restart(host: Incarnation, inMs: number): void {
      restartsInMs.set(host.daemon, inMs);
      fleet.terminate(host);
    },
    /** Its key file holds another key from now on. */
    renewKey(daemon: number): void {
      const host = running.get(daemon);
      keys[daemon] = newKeyOf(daemon);
      host?.clock.whenRunning(() => host.keeper.credentialsChanged());
    },
    /** A reload gives it another budget, in requests per 10 s. */
    rebudget(host: Incarnation, perWindow: number): void {
      host.clock.whenRunning(() => {
        budgets[host.daemon] = perWindow;
        options.reload(host.daemon);
      });
    },
    /** Until then the next request of this daemon opens a connection, and its host stands still meanwhile. */
    halt: halts.plan,
    /** Requests written by all of them. */
    requests: () => requests,
  };
  return fleet;
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
