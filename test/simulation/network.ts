import type { Transport, WireContent, WireRequest, WireResult } from '../../src/exchange/wire.ts';
import { gatewayPage, jsonReply, type Reply } from '../../src/simulator/answer.ts';
import { hashText } from '../../src/util/text.ts';
import type { Sent } from './court.ts';
import type { Judge } from './judge.ts';
import { FAULTS, type Fault, type FaultKind, type Plan, REQUEST_LIFETIME_MS } from './plan.ts';
import type { SimulatedServer } from './server.ts';
import type { HostClock, Timeline } from './virtual-clock.ts';

/** The faults of the wire: which of them hit a request, and every draw that a request needs. */
export interface WireFaults {
  /** A fault of the kind that holds now and hits this request, or null. */
  readonly hits: (kind: FaultKind, sent: Sent) => Fault | null;
  /** A number in [0, 1) that depends on the seed, the purpose and the request only. */
  readonly draw: (purpose: number, sent: Sent) => number;
}

interface Salted {
  readonly fault: Fault;
  readonly untilMs: number;
  readonly salt: number;
  /** Null for the requests of all markets. */
  readonly market: string | null;
  /** Null for all base addresses. */
  readonly base: number | null;
}

export function createWireFaults(plan: Plan, nowMs: () => number): WireFaults {
  const salts = new Map(
    ['', ...plan.markets.map(({ market }) => market)].map((name) => [name, hashText(name)]),
  );
  const streamOf = ({ daemon, life, market }: Sent) =>
    Math.imul(daemon * 64 + life, 0x9e3779b1) ^ (salts.get(market ?? '') ?? 0);
  const activeAt = createCalendar(saltFaults(plan));

  return {
    draw: (purpose, sent) => mixed(plan.seed + purpose, streamOf(sent), sent.nth),
    hits(kind, sent) {
      for (const { fault, salt, market, base } of activeAt(nowMs()).get(kind) ?? NONE) {
        if (market !== null && sent.market !== market) continue;
        if (base !== null && sent.base !== base) continue;
        if (fault.share < 1 && mixed(salt, streamOf(sent), sent.nth) >= fault.share) continue;
        return fault;
      }
      return null;
    },
  };
}

const NONE: readonly Salted[] = [];

function saltFaults({ seed, faults, markets }: Plan): Salted[] {
  return faults
    .filter(({ kind }) => FAULTS[kind] === 'requests' || FAULTS[kind] === 'base')
    .map((fault) => {
      const { kind, target, atMs, forMs } = fault;
      const all = target < 0;
      return {
        fault,
        untilMs: atMs + forMs,
        salt: hashText(`${seed} ${kind} ${atMs}`),
        market: all || FAULTS[kind] === 'base' ? null : (markets[target]?.market ?? ''),
        base: all || FAULTS[kind] === 'requests' ? null : target,
      };
    });
}

type Active = ReadonlyMap<FaultKind, readonly Salted[]>;

/** Which faults hold at a moment. Asked many times for every request, and the answer seldom changes. */
function createCalendar(faults: readonly Salted[]): (atMs: number) => Active {
  const turnsMs = faults.flatMap(({ fault, untilMs }) => [fault.atMs, untilMs]);
  let active: Active = new Map();
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;

  return (atMs) => {
    if (atMs >= fromMs && atMs < toMs) return active;
    fromMs = Math.max(0, ...turnsMs.filter((turnMs) => turnMs <= atMs));
    toMs = Math.min(...turnsMs.filter((turnMs) => turnMs > atMs));
    active = Map.groupBy(
      faults.filter(({ fault, untilMs }) => fault.atMs <= atMs && atMs < untilMs),
      ({ fault }) => fault.kind,
    );
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

/** Answers of whatever stands before the exchange, to pings as well; nothing was carried out. */
const BEFORE_ALL: readonly (readonly [FaultKind, Reply])[] = [
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

/** Answers of the exchange itself that stand in for its own; nothing was carried out. */
const INSTEAD: readonly (readonly [FaultKind, Reply])[] = [
  ['throttled-json', jsonReply(429, { code: 0, message: 'Too many requests.', errors: {} })],
  ['unauthorised', jsonReply(401, { code: 10, message: 'Unauthorized request.' })],
  [
    'forbidden',
    jsonReply(403, { code: 4, message: 'This API Key is not authorized to perform this action.' }),
  ],
  [
    'bad-request',
    jsonReply(422, {
      code: 31,
      message: 'Validation failed',
      errors: { market: ['Market is not available.'] },
    }),
  ],
  ['bad-payload', jsonReply(400, { code: 9, message: 'Invalid payload.', errors: [] })],
  ['error-in-200', jsonReply(200, { code: 0, message: 'Something went wrong', errors: {} })],
];

/**
 * What the exchange, or a gateway before it, makes of a request that arrives now; null where it never answers.
 * `writtenMs` is when it was written.
 */
function createGateway({
  timeline,
  faults,
  server,
  judge,
}: NetworkOptions): (sent: Sent, writtenMs: number) => Reply | null {
  const { hits } = faults;

  /** Only what reached the exchange is sent on a second time: a gateway that refuses does not pass it on later. */
  function twin(sent: Sent, writtenMs: number): void {
    const fault = hits('duplicate', sent);
    if (fault === null) return;
    const atMs = Math.min(timeline.nowMs() + fault.sizeMs, writtenMs + REQUEST_LIFETIME_MS);
    timeline.at(atMs, () => server.handle(sent));
  }

  return (sent, writtenMs) => {
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
    const seconds = Math.max(5, Math.round((granted?.sizeMs ?? 0) / 1000));
    const cut = granted === null || asked === null ? undefined : Math.min(asked, seconds);
    if (cut !== undefined) judge.onCut(sent.market);
    const answer = lies ? server.pretend(sent) : server.handle(sent, cut);
    twin(sent, writtenMs);
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
  readonly faults: WireFaults;
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
  const { timeline, clock, faults, judge } = options;
  const { roundTripMs } = options.plan;
  const { describe, sign } = createDescriber(options);
  const travel = createTraveller(options);

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
    /** The connection is open: what was signed to see whose request it is is forgotten. */
    const signAndWrite = () => {
      if (settled) return;
      sent = { ...sent, ...sign(wire) };
      write();
    };
    const halt = sent.order === null ? null : options.takeHalt();
    if (halt !== null) standStill(timeline, clock, roundTripMs / 2, halt);
    const refused = faults.hits('refuse-connections', sent) ?? faults.hits('base-refuses', sent);
    if (refused !== null) {
      timeline.at(timeline.nowMs() + roundTripMs, () =>
        settle(failed('network', 'connection refused', false)),
      );
    } else if (wire.fresh || halt !== null || faults.hits('reconnect', sent) !== null) {
      timeline.at(timeline.nowMs() + roundTripMs, () => clock.whenRunning(signAndWrite));
    } else {
      write();
    }
    return () => {
      if (settled) return;
      timeline.at(timeline.nowMs(), () => settle(failed('timeout', 'given up', written)));
    };
  }
  return { send, close: async () => {} };
}

function standStill(timeline: Timeline, clock: HostClock, inMs: number, { forMs, sleeps }: Halt): void {
  timeline.at(timeline.nowMs() + inMs, () => {
    if (sleeps) clock.suspend(forMs);
    else clock.stall(forMs);
  });
}

/** Numbers requests and reads what they ask for, once for everybody who looks at them. */
function createDescriber({ daemon, life, bases }: NetworkOptions) {
  const counts = new Map<string | null, number>();
  let number = -1;

  function lowered(given: WireContent['headers']): Record<string, string> {
    return Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  }
  function sign({ method, path, content }: WireRequest) {
    const { headers, body } = content();
    const asked: { market: string; nonce: string; timeout: string | null } | null =
      body === null ? null : JSON.parse(body);
    number += 1;
    const order = asked && {
      nonce: asked.nonce,
      timeoutSeconds: asked.timeout === null ? null : Number(asked.timeout),
    };
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

function failed(
  reason: 'network' | 'timeout' | 'aborted' | 'parse',
  detail: string,
  maybeApplied: boolean,
): WireResult {
  return { kind: 'failed', reason, detail, maybeApplied };
}

/** From the first byte to the answer, with everything that may happen to either. */
function createTraveller(options: NetworkOptions): (sent: Sent, settle: Settle) => void {
  const { timeline, faults, server, judge } = options;
  const { roundTripMs } = options.plan;
  const serve = createGateway(options);
  const wayMs = (purpose: number, sent: Sent) => (roundTripMs / 2) * (0.8 + 0.4 * faults.draw(purpose, sent));

  function reply(sent: Sent, answer: Reply, settle: Settle): void {
    if (faults.hits('lose-reply', sent) !== null) return;
    const slowMs =
      (faults.hits('slow-body', sent)?.sizeMs ?? 0) + (faults.hits('base-slow', sent)?.sizeMs ?? 0);
    const backMs = wayMs(2, sent) + slowMs;
    const answeredMs = server.nowMs();
    timeline.at(timeline.nowMs() + backMs, () => {
      if (faults.hits('reset-after', sent) !== null) {
        settle(failed('network', 'connection reset', true));
        return;
      }
      if (faults.hits('cut-off', sent) !== null) {
        settle(failed('parse', 'the body ended early', true));
        return;
      }
      const headers = {
        ...answer.headers,
        // Few answers are asked for it, and it is dear to make.
        get date() {
          return server.dateOf(answeredMs);
        },
      };
      const { status, body } = answer;
      settle({ kind: 'response', status, headers, body: Buffer.from(body, 'utf8') });
    });
  }

  return (sent, settle) => {
    const { hits } = faults;
    const writtenMs = timeline.nowMs();
    if ((hits('black-hole', sent) ?? hits('base-silent', sent) ?? hits('lose-request', sent)) !== null)
      return;
    const delayMs = hits('delay', sent)?.sizeMs ?? 0;
    const reorderMs = (hits('reorder', sent)?.sizeMs ?? 0) * faults.draw(3, sent);
    const thereMs = writtenMs + Math.min(wayMs(1, sent) + delayMs + reorderMs, REQUEST_LIFETIME_MS);
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
