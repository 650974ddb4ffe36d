import { encodePayload, signPayload } from '../../src/exchange/sign.ts';
import { jsonReply, type Reply } from '../../src/simulator/answer.ts';
import type { ExchangeEvent } from '../../src/simulator/event-log.ts';
import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import type { ApiKey } from '../../src/simulator/state.ts';
import { httpDate } from '../../src/util/text.ts';
import type { Sent } from './court.ts';
import type { Plan } from './plan.ts';
import type { Timeline } from './virtual-clock.ts';

/** Unix milliseconds of the exchange's clock at the start of every run. */
export const EPOCH_MS = 1_700_000_000_000;
/** The exchange counts requests against its limit over this. */
export const LIMIT_WINDOW_MS = 10_000;

/** The key that a daemon gets when its first one is revoked. */
export function newKeyOf(daemon: number): string {
  return `new-${daemon}`;
}

export type SimulatedServer = ReturnType<typeof createServer>;

/** The simulated exchange on the timeline of a run, with a clock of its own. */
export function createServer(plan: Plan, timeline: Timeline) {
  const rate = 1 + plan.serverDriftPpm * 1e-6;
  let steppedMs = 0;
  const nowMs = () => EPOCH_MS + steppedMs + timeline.nowMs() * rate;
  const toTrueMs = (serverMs: number) => (serverMs - EPOCH_MS - steppedMs) / rate;
  const exchange = createExchange(plan);
  const sync = createActor(exchange);
  const planFiring = createFiring(exchange, timeline, nowMs, toTrueMs);
  let arriving: Sent | null = null;

  const revoked = new Set<string>();

  function arrive(sent: Sent, request: Sent['request'], pretend?: 'pretend'): Reply {
    if (revoked.has(String(request.headers['x-txc-apikey'])))
      return jsonReply(401, { code: 10, message: 'Unauthorized request.' });
    arriving = sent;
    const reply = exchange.handle(request, nowMs(), pretend);
    arriving = null;
    planFiring();
    return reply;
  }
  return {
    /** The exchange's clock, Unix milliseconds. */
    nowMs,
    toTrueMs,
    stepClock(byMs: number): void {
      steppedMs += byMs;
      planFiring();
    },
    /** A moment of the exchange's clock as its `Date` header shows it. */
    dateOf: httpDate,
    /** `seconds`: carries it out as if it had asked for so much. */
    handle: (sent: Sent, seconds?: number) =>
      arrive(sent, seconds === undefined ? sent.request : asking(sent.request, seconds)),
    /** Answers as if the request were carried out. */
    pretend: (sent: Sent) => arrive(sent, sent.request, 'pretend'),
    /** The key of this request is taken no more from now on. */
    revoke: (key: string) => revoked.add(key),
    /** Somebody else with a key of the same account sets a timer, or deletes it with null. */
    meddle(market: string, timeoutSeconds: number | null): void {
      sync(market, timeoutSeconds, nowMs());
      planFiring();
    },
    /** Somebody else makes a request that changes nothing and counts against the limit. */
    knock: () => sync('', null, nowMs()),
    /** Gets every event together with the request that brought it about, if one did. */
    onEvent(listener: (event: ExchangeEvent, arriving: Sent | null) => void): void {
      exchange.log.subscribe((event) => listener(event, arriving));
    },
  };
}

/** The same request for a timer of another length. */
function asking(request: Sent['request'], timeoutSeconds: number): Sent['request'] {
  const body = JSON.stringify({ ...JSON.parse(String(request.body)), timeout: String(timeoutSeconds) });
  return { ...request, body, headers: { ...request.headers, 'x-txc-payload': encodePayload(body) } };
}

function createExchange(plan: Plan): SimulatedExchange {
  const renewed = plan.faults.filter(({ kind }) => kind === 'new-key').map(({ target }) => newKeyOf(target));
  const names = new Set([...plan.daemons.map(({ key }) => String(key)), ...renewed]);
  const keys = [...names].map((key) => ({
    key: `key-${key}`,
    secret: `secret-${key}`,
    account: 'main',
  }));
  return createSimulatedExchange({
    profile: plan.profile,
    keys: [...keys, ACTOR_KEY],
    startTimeRounding: plan.rounding,
    cancellationDelayMs: plan.cancellationDelayMs,
    limits: { 'kill-switch': { requests: plan.limitRequests, windowMs: LIMIT_WINDOW_MS } },
    eventCapacity: 64,
    // Half of the time of a run would go into checking what another test proves.
    checkSignatures: plan.seed % 10 === 0 && plan.faults.every(({ kind }) => kind !== 'grants-less'),
  });
}

/** Fires timers at their moment. The returned function looks up anew which comes first. */
function createFiring(
  exchange: SimulatedExchange,
  timeline: Timeline,
  nowMs: () => number,
  toTrueMs: (serverMs: number) => number,
): () => void {
  let cancel = () => {};
  let plannedMs: number | null = null;

  return function planFiring() {
    const dueMs = exchange.nextFiringMs();
    const trueMs = dueMs === null ? null : toTrueMs(dueMs) + 0.01;
    if (trueMs === plannedMs) return;
    cancel();
    plannedMs = trueMs;
    if (trueMs === null) return;
    cancel = timeline.at(trueMs, () => {
      plannedMs = null;
      exchange.advance(nowMs());
      planFiring();
    });
  };
}

/** Somebody else with a key of the same account. */
const ACTOR_KEY: ApiKey = { key: 'key-actor', secret: 'secret-actor', account: 'main' };

const PATH = '/api/v4/order/kill-switch';

/** Changes timers behind the daemons' backs, by the same API that they use. */
function createActor(exchange: SimulatedExchange) {
  let nonce = 1;
  /** `timeoutSeconds` null deletes. `nowMs` is the exchange's clock, Unix milliseconds. */
  return (market: string, timeoutSeconds: number | null, nowMs: number): void => {
    nonce += 1;
    const timeout = timeoutSeconds === null ? null : String(timeoutSeconds);
    const body = JSON.stringify({ request: PATH, nonce: String(nonce), market, timeout, types: null });
    const payload = encodePayload(body);
    const headers = {
      'content-type': 'application/json',
      'x-txc-apikey': ACTOR_KEY.key,
      'x-txc-payload': payload,
      'x-txc-signature': signPayload(payload, ACTOR_KEY.secret),
    };
    exchange.handle({ method: 'POST', path: PATH, headers, body }, nowMs);
  };
}
