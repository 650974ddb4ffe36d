import type { Flaw } from '../core/flaws.ts';
import { type CoreSettings, LOOKS_PER_MS, type MarketSettings } from '../core/settings.ts';
import { view } from '../core/view.ts';
import { ping } from '../exchange/operations.ts';
import { createSession, type Session } from '../exchange/session.ts';
import { startSync } from '../exchange/sync.ts';
import { createKeeper } from '../keeper.ts';
import type { Clock, Exchange, Observer } from '../ports.ts';
import { createHostClock } from '../simulator/virtual-clock.ts';
import { flawedLimiter, flawedNonces } from './flawed.ts';
import { BUDGET_MS, GRACE_MS, HANDOVER_MS, type Incarnation, type Shared, TTL_MS } from './incarnation.ts';
import { createSimulatedLimiter } from './limiter.ts';
import { createNetwork, type NetworkOptions } from './network.ts';
import { botName, type Plan, type PlannedDaemon, type PlannedMarket, REQUEST_LIFETIME_MS } from './plan.ts';
import { EPOCH_MS } from './server.ts';

export interface HostOptions extends Omit<NetworkOptions, 'clock' | 'bases' | 'roundTripMs'> {
  readonly plan: Plan;
  /** The markets as they are configured when the daemon starts. */
  readonly markets: Shared;
  readonly planned: PlannedDaemon;
  readonly flaw: Flaw | null;
  readonly limiterIsStuck: () => boolean;
  readonly observe: Observer;
}

/** A host with one daemon on it: the production keeper, core and client over a simulated wire and clock. */
export function createHost(
  options: HostOptions,
): Pick<Incarnation, 'clock' | 'keeper' | 'view' | 'configure'> {
  const { plan, planned, timeline, flaw, observe } = options;
  const bases = Array.from({ length: plan.bases }, (_, index) => `https://simulated-${index}`);
  const clock = createHostClock(timeline, {
    driftPpm: planned.driftPpm,
    wallMs: EPOCH_MS + timeline.nowMs() + planned.wallOffsetMs,
  });
  const session = createSession({
    transport: createNetwork({ ...options, clock, bases, roundTripMs: plan.roundTripMs }),
    clock,
    credentials: () => ({ key: `key-${planned.key}`, secret: `secret-${planned.key}` }),
    nonce: plan.nonce,
    userAgent: 'simulation',
    ...flawedNonces(flaw),
  });
  const acquire = flawedLimiter(flaw, clock) ?? createSimulatedLimiter(clock, options.limiterIsStuck);
  const configure = (markets: Shared) =>
    settingsOf(plan, markets, planned, bases, plan.seed + options.daemon, flaw);
  const exchange = createPort(session, clock, bases, acquire);
  const keeper = createKeeper({ settings: configure(options.markets), clock, exchange, observe });
  return { clock, configure, keeper, view: () => view(keeper.state, clock.now()) };
}

/** The port as `createExchange` builds it, but for the pings: their retries wait on promises, which know no virtual time. */
function createPort(
  session: Session,
  clock: Clock,
  bases: readonly string[],
  acquire: Exchange['acquire'],
): Exchange {
  const originAt = (base: number) => bases[base] ?? '';
  return {
    sync: (request, settled) => startSync(session, originAt(request.base), request, settled),
    ping(base, timeoutMs, settled) {
      const begunMs = clock.now().monoMs;
      const cancel = session.call(
        ping,
        null,
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
    acquire,
  };
}

function settingsOf(
  plan: Plan,
  { own, elsewhere }: Shared,
  planned: PlannedDaemon,
  bases: readonly string[],
  seed: number,
  flaw: Flaw | null,
): CoreSettings {
  return {
    markets: own.map(marketSettings),
    nonce: plan.nonce,
    bases,
    sameAccount: bases.length > 1,
    budget: { requests: plan.budgetRequests, windowMs: 10_000 },
    connections: 64,
    liveness: {
      mode: plan.watched ? (plan.evidence ?? 'beat') : 'none',
      ttlMs: TTL_MS,
      startupGraceMs: GRACE_MS,
      onStale: plan.onStale,
    },
    onLapse: 'rearm',
    shutdown: { policy: planned.policy, budgetMs: BUDGET_MS },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: plan.cancellationDelayMs,
    requestLifetimeMs: REQUEST_LIFETIME_MS,
    handover: { elsewhere: elsewhere.map(marketSettings), forMs: HANDOVER_MS },
    looksPerMs: plan.looksPerMs ?? LOOKS_PER_MS,
    seed,
    flaw,
  };
}

function marketSettings({ market, timeoutSeconds, types, bot }: PlannedMarket): MarketSettings {
  return { market, timeoutMs: timeoutSeconds * 1000, types, renewEveryMs: null, bot: botName(bot) };
}
