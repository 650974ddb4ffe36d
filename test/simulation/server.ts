import { jsonReply, type Reply } from '../../src/simulator/answer.ts';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import { KILL_SWITCH, signedText } from '../simulator/raw-client.ts';
import type { Sent } from './court.ts';
import type { Plan } from './plan.ts';
import type { Timeline } from './virtual-clock.ts';

/** Unix milliseconds of the exchange's clock at the start of every run. */
export const EPOCH_MS = 1_700_000_000_000;
/** The exchange counts requests against its limit over this. */
export const LIMIT_WINDOW_MS = 10_000;

export const UNAUTHORISED = jsonReply(401, { code: 10, message: 'Unauthorized request.' });

/** The key that a daemon gets when its first one is revoked. */
export const newKeyOf = (daemon: number) => `new-${daemon}`;

export type SimulatedServer = ReturnType<typeof createServer>;

/** The simulated exchange on the timeline of a run, with a clock of its own. */
export function createServer(plan: Plan, timeline: Timeline) {
  const rate = 1 + plan.serverDriftPpm * 1e-6;
  let steppedMs = 0;
  /** Unix milliseconds. */
  const nowMs = () => EPOCH_MS + steppedMs + timeline.nowMs() * rate;
  const toTrueMs = (serverMs: number) => (serverMs - EPOCH_MS - steppedMs) / rate;
  const exchange = createExchange(plan);
  const act = createActor(exchange);
  const revoked = new Set<string>();
  let arriving: Sent | null = null;
  let cancelFiring = () => {};
  let firesAtMs: number | null = null;

  /** Looks up anew which timer fires first. */
  function planFiring(): void {
    const dueMs = exchange.nextFiringMs();
    const trueMs = dueMs === null ? null : toTrueMs(dueMs) + 0.01;
    if (trueMs === firesAtMs) return;
    cancelFiring();
    firesAtMs = trueMs;
    if (trueMs === null) return;
    cancelFiring = timeline.at(trueMs, () => {
      firesAtMs = null;
      exchange.advance(nowMs());
      planFiring();
    });
  }
  return {
    nowMs,
    toTrueMs,
    stepClock(byMs: number): void {
      steppedMs += byMs;
      planFiring();
    },
    /** `pretend`: answers as if it were carried out. `seconds`: grants so much, whatever it asks for. */
    handle(sent: Sent, pretend?: 'pretend', seconds?: number): Reply {
      if (revoked.has(String(sent.request.headers['x-txc-apikey']))) return UNAUTHORISED;
      arriving = sent;
      const reply = exchange.handle(sent.request, nowMs(), pretend, seconds);
      arriving = null;
      planFiring();
      return reply;
    },
    /** The key of this name is taken no more from now on. */
    revoke: (key: string) => revoked.add(key),
    /** Somebody else with a key of the same account sets a timer, or deletes it with null. */
    meddle(market: string, timeoutSeconds: number | null): void {
      act(market, timeoutSeconds, nowMs());
      planFiring();
    },
    /** Somebody else makes a request that changes nothing and counts against the limit. */
    knock: () => act('', null, nowMs()),
    /** Gets every event together with the request that brought it about, if one did. */
    onEvent(listener: (event: ExchangeEvent, arriving: Sent | null) => void): void {
      exchange.log.subscribe((event) => listener(event, arriving));
    },
  };
}

/** Somebody else with a key of the same account. */
const ACTOR = 'actor';
const keyOf = (name: string) => ({ key: `key-${name}`, secret: `secret-${name}`, account: 'main' });

function createExchange(plan: Plan): SimulatedExchange {
  const renewed = plan.faults.filter(({ kind }) => kind === 'new-key').map(({ target }) => newKeyOf(target));
  const names = new Set([...plan.daemons.map(({ key }) => String(key)), ...renewed, ACTOR]);
  return createSimulatedExchange({
    profile: plan.profile,
    keys: Array.from(names, keyOf),
    startTimeRounding: plan.rounding,
    cancellationDelayMs: plan.cancellationDelayMs,
    limits: { 'kill-switch': { requests: plan.limitRequests, windowMs: LIMIT_WINDOW_MS } },
    eventCapacity: 64,
    // Half of the time of a run would go into checking what another test proves.
    checkSignatures: plan.seed % 10 === 0,
  });
}

/** Changes timers behind the daemons' backs, by the same API that they use. */
function createActor(exchange: SimulatedExchange) {
  const { key, secret } = keyOf(ACTOR);
  let nonce = 1;
  /** `timeoutSeconds` null deletes. `nowMs` is the exchange's clock, Unix milliseconds. */
  return (market: string, timeoutSeconds: number | null, nowMs: number): void => {
    nonce += 1;
    const timeout = timeoutSeconds === null ? null : String(timeoutSeconds);
    const body = JSON.stringify({ request: KILL_SWITCH, nonce: String(nonce), market, timeout, types: null });
    exchange.handle(signedText(body, { key, secret }), nowMs);
  };
}
