import type { Transport, WireContent, WireRequest, WireResult } from '../../src/exchange/wire.ts';
import { gatewayPage, jsonReply, type Reply } from '../../src/simulator/answer.ts';
import { hashText, httpDate } from '../../src/util/text.ts';
import { perKey, type Sent } from './court.ts';
import type { Judge } from './judge.ts';
import { FAULTS, type Fault, type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import { type SimulatedServer, UNAUTHORISED } from './server.ts';
import type { HostClock, Timeline } from './virtual-clock.ts';

/** A fault, and which requests it hits: null for those of all markets, or of all base addresses. */
interface Salted {
  readonly fault: Fault;
  readonly salt: number;
  readonly market: string | null;
  readonly base: number | null;
}

/** The faults of the wire: which of them hit a request, and every draw that a request needs. */
export function createWireFaults(plan: Plan, nowMs: () => number) {
  const salts = new Map(
    ['', ...plan.markets.map(({ market }) => market)].map((name) => [name, hashText(name)]),
  );
  const streamOf = ({ daemon, life, market }: Sent) =>
    Math.imul(daemon * 64 + life, 0x9e3779b1) ^ (salts.get(market ?? '') ?? 0);
  const activeAt = createCalendar(saltFaults(plan));
  return {
    /** A number in [0, 1) that depends on the seed, the purpose and the request only. */
    draw: (purpose: number, sent: Sent) => mixed(plan.seed + purpose, streamOf(sent), sent.nth),
    /** A fault of the kind that holds now and hits this request, or null. */
    hits: (kind: FaultKind, sent: Sent): Fault | null => {
      for (const { fault, salt, market, base } of activeAt(nowMs()).get(kind) ?? []) {
        if (market !== null && sent.market !== market) continue;
        if (base !== null && sent.base !== base) continue;
        if (fault.share < 1 && mixed(salt, streamOf(sent), sent.nth) >= fault.share) continue;
        return fault;
      }
      return null;
    },
  };
}

function saltFaults({ seed, faults, markets }: Plan): Salted[] {
  return faults.flatMap((fault) => {
    const { kind, target, atMs } = fault;
    const struck = FAULTS[kind];
    if (struck !== 'requests' && struck !== 'base') return [];
    const market = struck === 'base' || target < 0 ? null : (markets[target]?.market ?? '');
    const base = struck === 'requests' || target < 0 ? null : target;
    return { fault, salt: hashText(`${seed} ${kind} ${atMs}`), market, base };
  });
}

/** Which faults hold at a moment. Asked many times for every request, and the answer seldom changes. */
function createCalendar(faults: readonly Salted[]) {
  const turnsMs = faults.flatMap(({ fault: { atMs, forMs } }) => [atMs, atMs + forMs]);
  let active = new Map<FaultKind, readonly Salted[]>();
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;
  return (nowMs: number) => {
    if (nowMs >= fromMs && nowMs < toMs) return active;
    fromMs = Math.max(0, ...turnsMs.filter((turnMs) => turnMs <= nowMs));
    toMs = Math.min(...turnsMs.filter((turnMs) => turnMs > nowMs));
    const hold = faults.filter(({ fault: { atMs, forMs } }) => atMs <= nowMs && nowMs < atMs + forMs);
    active = Map.groupBy(hold, ({ fault }) => fault.kind);
    return active;
  };
}

/** A number in [0, 1) made of three whole ones (the finisher of MurmurHash3). */
function mixed(one: number, two: number, three: number): number {
  let hash = Math.imul(one, 0x85ebca6b) ^ Math.imul(two, 0xc2b2ae35) ^ Math.imul(three + 1, 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

const SERVER_ERROR = jsonReply(500, { error: ['Internal server error.'] });
const THROTTLED = gatewayPage(429, 'Too Many Requests');
type Answers = readonly (readonly [FaultKind, Reply])[];

/** Answers of whatever stands before the exchange, to pings as well; nothing was carried out. */
const BEFORE_ALL: Answers = [
  ['server-error', SERVER_ERROR],
  ['base-errors', SERVER_ERROR],
  ['gateway-page', gatewayPage(503, 'Service Temporarily Unavailable')],
  ['throttled-page', THROTTLED],
];

/** What a gateway says that has lost its mind for a moment; the API's own refusals are objects with a code. */
const REFUSAL_PAGES: readonly Reply[] = [
  gatewayPage(401, 'Authorization Required'),
  gatewayPage(403, 'Forbidden'),
  gatewayPage(422, 'Unprocessable Entity'),
];

const NO_MARKET = { market: ['Market is not available.'] };

/** Answers of the exchange itself that stand in for its own; nothing was carried out. */
const INSTEAD: Answers = [
  ['throttled-json', jsonReply(429, { code: 0, message: 'Too many requests.', errors: {} })],
  ['unauthorised', UNAUTHORISED],
  [
    'forbidden',
    jsonReply(403, { code: 4, message: 'This API Key is not authorized to perform this action.' }),
  ],
  ['bad-request', jsonReply(422, { code: 31, message: 'Validation failed', errors: NO_MARKET })],
  ['bad-payload', jsonReply(400, { code: 9, message: 'Invalid payload.', errors: [] })],
  ['error-in-200', jsonReply(200, { code: 0, message: 'Something went wrong', errors: {} })],
];

/**
 * What the exchange, or a gateway before it, makes of a request that arrives now; null where it never answers.
 * `writtenMs` is when it was written.
 */
function createGateway({ timeline, faults: { hits }, server, judge }: NetworkOptions) {
  return (sent: Sent, writtenMs: number): Reply | null => {
    if ((hits('black-hole', sent) ?? hits('base-silent', sent)) !== null) return null;
    for (const [kind, answer] of BEFORE_ALL) if (hits(kind, sent) !== null) return answer;
    if (sent.order === null) return server.handle(sent);
    for (const [kind, answer] of INSTEAD) if (hits(kind, sent) !== null) return answer;
    const page = hits('refusal-page', sent);
    if (page !== null) return REFUSAL_PAGES[Math.round(page.sizeMs) % REFUSAL_PAGES.length] ?? null;
    const lies = hits('lie', sent) !== null;
    // The exchange answers as if it had carried out what it did not.
    if (lies) judge.onTruthBroken(sent.market);
    const asked = sent.order.timeoutSeconds;
    const granted = asked === null ? null : hits('grants-less', sent);
    if (granted !== null) judge.onCut(sent.market);
    const answer =
      granted === null || asked === null || lies
        ? server.handle(sent, lies ? 'pretend' : undefined)
        : server.handle(sent, undefined, Math.min(asked, Math.max(5, Math.round(granted.sizeMs / 1000))));
    // Only what reached the exchange is sent on a second time: a gateway that refuses does not pass it on later.
    const twin = hits('duplicate', sent);
    if (twin !== null)
      timeline.at(Math.min(timeline.nowMs() + twin.sizeMs, writtenMs + REQUEST_LIFETIME_MS), () =>
        server.handle(sent),
      );
    if (hits('unacknowledged', sent) !== null) return SERVER_ERROR;
    return hits('unacknowledged-page', sent) === null ? answer : THROTTLED;
  };
}

export interface NetworkOptions {
  readonly plan: Plan;
  readonly timeline: Timeline;
  readonly server: SimulatedServer;
  readonly judge: Judge;
  readonly clock: HostClock;
  readonly daemon: number;
  readonly life: number;
  readonly bases: readonly string[];
  readonly faults: ReturnType<typeof createWireFaults>;
  /** How long the host is to stand still while it opens the next connection; null where it is not. */
  readonly takeHalt: () => Halt | null;
}

export interface Halt {
  readonly forMs: number;
  readonly sleeps: boolean;
}

type Settle = (result: WireResult) => void;

/** The wire of one simulated daemon: everything of the real client above it is the production code. */
export function createNetwork(options: NetworkOptions): Transport {
  const { timeline, clock, judge } = options;
  const { hits } = options.faults;
  const { roundTripMs } = options.plan;
  const { describe, sign } = createDescriber(options);
  const travel = createTraveller(options);
  const after = (delayMs: number, run: () => void) => timeline.at(timeline.nowMs() + delayMs, run);

  function send(wire: WireRequest, done: Settle) {
    let sent = describe(wire);
    let settled = false;
    let written = false;
    /** Tells the daemon, as soon as its host runs. */
    const settle: Settle = (result) => {
      clock.whenRunning(() => {
        if (settled) return;
        settled = true;
        judge.onSettled(sent);
        done(result);
      });
    };
    const write = () => {
      if (settled) return;
      if (!wire.mayWrite()) {
        settle(failed('aborted', 'no longer allowed to leave', false));
        return;
      }
      written = true;
      judge.onWrite(sent);
      travel(sent, settle);
    };
    const halt = sent.order === null ? null : options.takeHalt();
    if (halt !== null)
      after(roundTripMs / 2, () => (halt.sleeps ? clock.suspend(halt.forMs) : clock.stall(halt.forMs)));
    if ((hits('refuse-connections', sent) ?? hits('base-refuses', sent)) !== null) {
      after(roundTripMs, () => settle(failed('network', 'connection refused', false)));
    } else if (wire.fresh || halt !== null || hits('reconnect', sent) !== null) {
      after(roundTripMs, () =>
        clock.whenRunning(() => {
          // The connection is open: what was signed to see whose request it is is forgotten.
          if (!settled) sent = { ...sent, ...sign(wire) };
          write();
        }),
      );
    } else {
      write();
    }
    return () => {
      if (!settled) after(0, () => settle(failed('timeout', 'given up', written)));
    };
  }
  return { send, close: async () => {} };
}

/** Numbers requests and reads what they ask for, once for everybody who looks at them. */
function createDescriber({ daemon, life, bases }: NetworkOptions) {
  const counts = new Map<string | null, number>();
  let number = -1;

  function sign({ method, path, content }: WireRequest) {
    const { headers, body } = content();
    const asked: { market: string; nonce: string; timeout: string | null } | null =
      body === null ? null : JSON.parse(body);
    number += 1;
    const timeoutSeconds = asked?.timeout == null ? null : Number(asked.timeout);
    const order = asked && { nonce: asked.nonce, timeoutSeconds };
    const request = { method, path, headers: lowered(headers), body: body ?? '' };
    return { market: asked?.market ?? null, order, request, number };
  }
  return {
    sign,
    describe: (wire: WireRequest): Sent => {
      const signed = sign(wire);
      const nth = counts.get(signed.market) ?? 0;
      counts.set(signed.market, nth + 1);
      return { daemon, life, base: bases.indexOf(wire.base), ...signed, nth, fresh: wire.fresh };
    },
  };
}

const lowerCaseOf = perKey((name: string) => name.toLowerCase());

function lowered(given: WireContent['headers']) {
  const headers: Record<string, string | undefined> = {};
  for (const name in given) headers[lowerCaseOf(name)] = given[name];
  return headers;
}

type Failed = Extract<WireResult, { kind: 'failed' }>;
const failed = (reason: Failed['reason'], detail: string, maybeApplied: boolean): WireResult => ({
  kind: 'failed',
  reason,
  detail,
  maybeApplied,
});

/** From the first byte to the answer, with everything that may happen to either. */
function createTraveller(options: NetworkOptions) {
  const { timeline, server, judge } = options;
  const { hits, draw } = options.faults;
  const serve = createGateway(options);
  const wayMs = (purpose: number, sent: Sent) =>
    (options.plan.roundTripMs / 2) * (0.8 + 0.4 * draw(purpose, sent));
  const sizeOf = (kind: FaultKind, sent: Sent) => hits(kind, sent)?.sizeMs ?? 0;

  function reply(sent: Sent, { status, headers, body }: Reply, settle: Settle): void {
    if (hits('lose-reply', sent) !== null) return;
    const backMs = wayMs(2, sent) + (sizeOf('slow-body', sent) + sizeOf('base-slow', sent));
    const answeredMs = server.nowMs();
    timeline.at(timeline.nowMs() + backMs, () => {
      if (hits('reset-after', sent) !== null) settle(failed('network', 'connection reset', true));
      else if (hits('cut-off', sent) !== null) settle(failed('parse', 'the body ended early', true));
      else {
        const dated = {
          ...headers,
          // Few answers are asked for it, and it is dear to make.
          get date() {
            return httpDate(answeredMs);
          },
        };
        settle({ kind: 'response', status, headers: dated, body: Buffer.from(body, 'utf8') });
      }
    });
  }

  return (sent: Sent, settle: Settle): void => {
    const writtenMs = timeline.nowMs();
    if ((hits('black-hole', sent) ?? hits('base-silent', sent) ?? hits('lose-request', sent)) !== null)
      return;
    const lateMs = wayMs(1, sent) + sizeOf('delay', sent) + sizeOf('reorder', sent) * draw(3, sent);
    const thereMs = writtenMs + Math.min(lateMs, REQUEST_LIFETIME_MS);
    if (hits('reset-before', sent) !== null) {
      timeline.at(thereMs, () => settle(failed('network', 'connection reset', true)));
      return;
    }
    timeline.at(thereMs, () => {
      judge.onArrival(sent);
      const answer = serve(sent, writtenMs);
      if (answer !== null) reply(sent, answer, settle);
    });
  };
}
