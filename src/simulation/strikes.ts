import type { Timeline } from '../simulator/virtual-clock.ts';
import type { Bots } from './bots.ts';
import type { Fleet } from './fleet.ts';
import type { Judge } from './judge.ts';
import type { Operators } from './operators.ts';
import { FAULTS, type Fault, type Plan } from './plan.ts';
import { LIMIT_WINDOW_MS, type SimulatedServer } from './server.ts';

/** How long after a SIGTERM the daemon is started again, beside the length of the fault. */
export const RESTART_AFTER_MS = 10_000;
const MEDDLED_SECONDS = 30;

export interface Struck {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly judge: Judge;
  readonly server: SimulatedServer;
  readonly fleet: Fleet;
  readonly bots: Bots;
  readonly operators: Operators;
}

/** Carries out a fault at its moment. Those of the wire are conditions: requests ask for them. */
export function strike(world: Struck, fault: Fault): void {
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

function strikeDaemon({ timeline, fleet }: Struck, { kind, target, forMs, share, sizeMs }: Fault): void {
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
    case 'stutters':
      stutter(timeline, fleet, target, timeline.nowMs() + forMs, sizeMs);
      break;
    case 'halts-connecting':
      fleet.halt(target, timeline.nowMs() + forMs - sizeMs, { forMs: sizeMs, sleeps: share < 0.5 });
      break;
    case 'limiter-stuck':
      fleet.holdLimiter(target, timeline.nowMs() + forMs);
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
      break;
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
