import type { CoreSettings } from '../core/settings.ts';
import { classifySync } from '../exchange/classify.ts';
import { ping, syncKillSwitch } from '../exchange/operations.ts';
import { createSession } from '../exchange/session.ts';
import { createKeeper, type Keeper } from '../keeper.ts';
import type { Exchange } from '../ports.ts';
import { createRandom, hashText } from '../simulator/random.ts';
import { createSimulatedExchange } from '../simulator/simulated-exchange.ts';
import { createHostClock, createTimeline, type HostClock } from '../simulator/virtual-clock.ts';
import { ACTOR_KEY, createActor } from './actor.ts';
import { createJudge, type Violation } from './judge.ts';
import { createSimulatedLimiter } from './limiter.ts';
import { createNetwork, type Sent } from './network.ts';
import { type Fault, type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';

export interface RunOptions {
  /** Gets every line of the event log, in order: notices of the daemons and events of the exchange. */
  readonly onLine?: (line: string) => void;
  /** A known bug to plant, for the canaries. */
  readonly flaw?: CoreSettings['flaw'];
}

export interface RunResult {
  readonly violations: readonly Violation[];
  readonly simulatedMs: number;
  readonly requests: number;
}

/** One life of one simulated daemon; a restart begins another. */
export interface Incarnation {
  readonly daemon: number;
  readonly life: number;
  readonly startedMs: number;
  readonly clock: HostClock;
  readonly keeper: Keeper;
  stoppingMs: number | null;
  ended: boolean;
}

/** Unix milliseconds of the exchange's clock at the start of every run. */
const EPOCH_MS = 1_700_000_000_000;
export const TTL_MS = 15_000;
export const GRACE_MS = 20_000;
const BEAT_MS = 3_000;
const RESTART_MS = 2_000;
const WITH_LATCHES: ReadonlySet<FaultKind> = new Set(['unauthorised', 'bad-request']);

/**
 * Runs one plan on virtual time: the production core, keeper, signing, nonces, decoding and classifying against the
 * simulated exchange. Faults until `faultyMs`, then none, and everything must be armed again within a bound. A run is a
 * function of its plan.
 */
export function runPlan(plan: Plan, options: RunOptions = {}): RunResult {
  const timeline = createTimeline(0);
  const say = options.onLine ?? (() => {});
  let serverStepMs = 0;
  const serverNowMs = () => EPOCH_MS + serverStepMs + timeline.nowMs() * (1 + plan.serverDriftPpm * 1e-6);
  const toTrueMs = (serverMs: number) =>
    (serverMs - EPOCH_MS - serverStepMs) / (1 + plan.serverDriftPpm * 1e-6);
  const exchange = createSimulatedExchange({
    profile: plan.profile,
    keys: [
      ...plan.daemons.map((_, index) => ({
        key: `key-${index}`,
        secret: `secret-${index}`,
        account: 'main',
      })),
      ACTOR_KEY,
    ],
    startTimeRounding: plan.rounding,
    cancellationDelayMs: plan.cancellationDelayMs,
    eventCapacity: 64,
    // Half of the time of a run would go into checking what another test proves.
    checkSignatures: plan.seed % 10 === 0,
  });
  const actor = createActor(exchange);
  const running = new Map<number, Incarnation>();
  const lives = plan.daemons.map(() => 0);
  const silentUntilMs = Array.from({ length: plan.bots }, () => 0);
  const stuckUntilMs = plan.daemons.map(() => 0);
  const judge = createJudge({ plan, timeline, serverNowMs, toTrueMs, running });
  let requests = 0;

  // ---- the exchange -------------------------------------------------------------------------------------------
  let arriving: Sent | null = null;
  let cancelFiring = () => {};
  function planFiring(): void {
    cancelFiring();
    const dueMs = exchange.nextFiringMs();
    if (dueMs === null) return;
    cancelFiring = timeline.at(toTrueMs(dueMs) + 0.01, () => {
      exchange.advance(serverNowMs());
      planFiring();
    });
  }
  exchange.log.subscribe((event) => {
    say(`${timeline.nowMs().toFixed(3)} exchange ${JSON.stringify(event)}`);
    judge.onExchange(event, arriving);
  });
  const arrive = (sent: Sent, handle: () => void) => {
    arriving = sent;
    handle();
    arriving = null;
    planFiring();
  };

  // ---- faults -------------------------------------------------------------------------------------------------
  const byKind = new Map<FaultKind, Fault[]>();
  for (const fault of plan.faults) byKind.set(fault.kind, [...(byKind.get(fault.kind) ?? []), fault]);
  const draw = (purpose: number, sent: Sent) =>
    createRandom(hashText(`${plan.seed} ${sent.daemon} ${sent.number} ${purpose}`))();
  function hits(kind: FaultKind, sent: Sent): Fault | null {
    const faults = byKind.get(kind);
    if (faults === undefined) return null;
    const nowMs = timeline.nowMs();
    for (const fault of faults) {
      if (nowMs < fault.atMs || nowMs >= fault.atMs + fault.forMs) continue;
      if (fault.target >= 0 && sent.market !== plan.markets[fault.target]?.market) continue;
      const seed = `${plan.seed} ${kind} ${fault.atMs} ${sent.daemon} ${sent.number}`;
      if (fault.share < 1 && createRandom(hashText(seed))() >= fault.share) continue;
      if (kind === 'lie') judge.onTruthBroken(sent.market);
      return fault;
    }
    return null;
  }

  // ---- daemons ------------------------------------------------------------------------------------------------
  function start(daemon: number): void {
    const planned = plan.daemons[daemon];
    if (planned === undefined || running.has(daemon)) return;
    const clock = createHostClock(timeline, {
      driftPpm: planned.driftPpm,
      wallMs: EPOCH_MS + timeline.nowMs() + planned.wallOffsetMs,
    });
    const transport = createNetwork({
      timeline,
      clock,
      daemon,
      exchange,
      serverNowMs,
      roundTripMs: plan.roundTripMs,
      hits,
      draw,
      onWrite: (sent) => {
        requests += 1;
        judge.onWrite(sent);
      },
      arrive,
    });
    const credentials = () => ({ key: `key-${daemon}`, secret: `secret-${daemon}` });
    const session = createSession({
      transport,
      clock,
      credentials,
      nonce: plan.nonce,
      userAgent: 'simulation',
    });
    const base = 'https://simulated';
    const port: Exchange = {
      sync: (request, settled) =>
        session.call(
          syncKillSwitch,
          request,
          { base, fresh: request.fresh, mayWrite: request.mayWrite },
          (result, redact) => classifySync(result, request, redact),
          settled,
        ),
      ping(_base, timeoutMs, settled) {
        const begunMs = clock.now().monoMs;
        const cancel = session.call(
          ping,
          null,
          { base, fresh: false, mayWrite: () => true },
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
      acquire: createSimulatedLimiter(clock, () => timeline.nowMs() < (stuckUntilMs[daemon] ?? 0)),
    };
    const keeper = createKeeper({
      settings: settingsOf(plan, daemon, options.flaw ?? null),
      clock,
      exchange: port,
      observe: (notice, now) => {
        if (options.onLine !== undefined && notice.kind !== 'attempt') {
          say(
            `${timeline.nowMs().toFixed(3)} daemon-${daemon} ${now.monoMs.toFixed(3)} ${JSON.stringify(notice)}`,
          );
        }
        judge.onNotice(incarnation, notice);
        if (notice.kind === 'stopped') running.delete(daemon);
      },
    });
    lives[daemon] = (lives[daemon] ?? 0) + 1;
    const life = lives[daemon] ?? 1;
    const incarnation: Incarnation = {
      daemon,
      life,
      startedMs: timeline.nowMs(),
      clock,
      keeper,
      stoppingMs: null,
      ended: false,
    };
    running.set(daemon, incarnation);
    judge.onStart(incarnation);
    keeper.onTurn(() => judge.onTurn(incarnation));
    keeper.start();
  }

  function strike(fault: Fault): void {
    const host = running.get(fault.target);
    const nowMs = timeline.nowMs();
    const market = plan.markets[fault.target]?.market ?? '';
    switch (fault.kind) {
      case 'wall-step':
        host?.clock.stepWall(fault.sizeMs);
        break;
      case 'stall':
        host?.clock.stall(fault.forMs);
        break;
      case 'suspend':
        host?.clock.suspend(fault.forMs);
        break;
      case 'crash':
        if (host === undefined) break;
        host.clock.kill();
        host.ended = true;
        running.delete(fault.target);
        timeline.at(nowMs + fault.forMs, () => start(fault.target));
        break;
      case 'terminate':
        host?.clock.whenRunning(() => terminate(host));
        timeline.at(nowMs + fault.forMs + 10_000, () => start(fault.target));
        break;
      case 'limiter-stuck':
        stuckUntilMs[fault.target] = Math.max(stuckUntilMs[fault.target] ?? 0, nowMs + fault.forMs);
        break;
      case 'bot-silent':
      case 'bot-goodbye':
        if (fault.kind === 'bot-goodbye') sayAll(fault.target, 'goodbye');
        silentUntilMs[fault.target] = Math.max(silentUntilMs[fault.target] ?? 0, nowMs + fault.forMs);
        break;
      case 'server-clock-step':
        judge.onTruthBroken(null);
        serverStepMs += fault.sizeMs;
        planFiring();
        break;
      case 'forget-timers':
        judge.onTruthBroken(null);
        for (const { market: name } of plan.markets) actor.sync(name, null, serverNowMs());
        planFiring();
        break;
      case 'actor-deletes':
      case 'actor-changes':
        judge.onTruthBroken(market);
        actor.sync(market, fault.kind === 'actor-deletes' ? null : 30, serverNowMs());
        planFiring();
        break;
      default:
        // The rest are conditions of the wire: `hits` asks for them.
        break;
    }
  }
  function terminate(host: Incarnation): void {
    host.stoppingMs ??= timeline.nowMs();
    judge.onStop(host);
    void host.keeper.stop(plan.daemons[host.daemon]?.policy ?? 'delete', 'SIGTERM');
  }

  // ---- bots ---------------------------------------------------------------------------------------------------
  function sayAll(bot: number, says: 'beat' | 'goodbye'): void {
    for (const host of running.values()) {
      // What reaches a host that stands still is answered late, and a bot does not take that for a beat.
      if (host.clock.isStalled() || !plan.watched) continue;
      judge.onEvidence(host, bot, says);
      host.keeper.hear(`bot-${bot}`, says);
    }
  }
  function beat(bot: number): void {
    if (timeline.nowMs() >= (silentUntilMs[bot] ?? 0)) sayAll(bot, 'beat');
    timeline.at(timeline.nowMs() + BEAT_MS, () => beat(bot));
  }

  for (const [index, { startMs }] of plan.daemons.entries()) timeline.at(startMs, () => start(index));
  for (const fault of plan.faults) timeline.at(fault.atMs, () => strike(fault));
  for (let bot = 0; bot < plan.bots; bot += 1) timeline.at(500 + 100 * bot, () => beat(bot));

  timeline.runUntil(plan.faultyMs);
  // Whatever was on its way may still arrive, hosts wake up, and everybody who should run is started again.
  const settleMs = plan.faultyMs + longestStallMs(plan) + REQUEST_LIFETIME_MS + RESTART_MS;
  silentUntilMs.fill(0);
  timeline.runUntil(settleMs);
  for (let index = 0; index < plan.daemons.length; index += 1) start(index);
  const boundMs = plan.faults.some(({ kind }) => WITH_LATCHES.has(kind)) ? 80_000 : 15_000;
  timeline.runUntil(settleMs + boundMs);
  judge.onEnd();
  return { violations: judge.violations, simulatedMs: timeline.nowMs(), requests };
}

/** A stall or suspend may begin just before the end of the faulty phase. */
function longestStallMs(plan: Plan): number {
  return plan.faults.reduce((most, { kind, atMs, forMs }) => {
    const holds = kind === 'stall' || kind === 'suspend' || kind === 'terminate' || kind === 'crash';
    return holds ? Math.max(most, atMs + forMs + 10_000 - plan.faultyMs) : most;
  }, 0);
}

function settingsOf(plan: Plan, daemon: number, flaw: CoreSettings['flaw']): CoreSettings {
  return {
    markets: plan.markets.map(({ market, timeoutSeconds, types, bot }) => ({
      market,
      timeoutMs: timeoutSeconds * 1000,
      types,
      renewEveryMs: null,
      bot: `bot-${bot}`,
    })),
    nonce: plan.nonce,
    bases: ['https://simulated'],
    sameAccount: false,
    budget: { requests: plan.budgetRequests, windowMs: 10_000 },
    connections: 64,
    liveness: {
      mode: plan.watched ? 'beat' : 'none',
      ttlMs: TTL_MS,
      startupGraceMs: GRACE_MS,
      onStale: plan.onStale,
    },
    onLapse: 'rearm',
    shutdown: { policy: plan.daemons[daemon]?.policy ?? 'delete', budgetMs: 8000 },
    ping: { everyMs: 5000, timeoutMs: 3000 },
    cancellationDelayMs: plan.cancellationDelayMs,
    requestLifetimeMs: REQUEST_LIFETIME_MS,
    seed: plan.seed + daemon,
    flaw,
  };
}
