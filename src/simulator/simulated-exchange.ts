import type { ServerTimer } from '../core/outcome.ts';
import { type Answer, type Refusal, type Reply, reasonOf, refuse, renderAnswer } from './answer.ts';
import { createEventLog, type EventLog } from './event-log.ts';
import { type ExchangeState, fireDueTimers, type Profile, type Rounding } from './exchange-state.ts';
import { createMarketCheck } from './markets.ts';
import { createNonceBook } from './nonce-book.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import { createRateWindow, type RateLimit } from './rate-window.ts';
import { createRestingOrders, type OrderRequest, type RestingOrder } from './resting-orders.ts';
import {
  type ApiKey,
  checkSignedRequest,
  type Headers,
  parseCompactObject,
  type SignatureRules,
} from './signed-request.ts';
import { createTimerTable, type KillSwitchTimer } from './timer-table.ts';

/** Bodies larger than this are refused with 413. */
export const MAX_BODY_BYTES = 64 * 1024;

/** Keys, timers and orders belong to this account unless told otherwise. */
export const DEFAULT_ACCOUNT = 'main';

export const DEMO_KEY: ApiKey = { key: 'demo-key', secret: 'demo-secret', account: DEFAULT_ACCOUNT };

export interface ExchangeOptions {
  /** Default `documented`. */
  readonly profile?: Profile;
  /** Default: `demo-key` with `demo-secret`. */
  readonly keys?: readonly ApiKey[];
  /** Default `any`: every name of the form BASE_QUOTE. */
  readonly markets?: readonly string[] | 'any';
  /** Default `floor`. */
  readonly startTimeRounding?: Rounding;
  /** How long after its cancellationTime a timer fires, milliseconds; default 0. */
  readonly cancellationDelayMs?: number;
  /** Limits by operation name in place of those of the document. */
  readonly limits?: Readonly<Record<string, RateLimit>>;
  /** Default true. False takes every signature of a known key for right, which halves the work of a long simulation. */
  readonly checkSignatures?: boolean;
  /** How many events the log keeps; default 100,000. */
  readonly eventCapacity?: number;
}

/** One HTTP request. `path` may carry a query; header names are lower case. */
export interface ExchangeRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string | Buffer;
}

/** What a request asks for, read without any check: what a fault can be matched against. */
export interface RequestTarget {
  /** Null where no operation has this path. */
  readonly operation: string | null;
  /** Null where the body names none. */
  readonly market: string | null;
}

export interface SimulatedExchange {
  readonly profile: Profile;
  readonly markets: readonly string[] | 'any';
  readonly hasMarket: (name: string) => boolean;
  readonly log: EventLog;
  /**
   * Answers one request at the exchange's time `nowMs` (Unix milliseconds); timers that are due by then fire first.
   * With `pretend` the request is checked and answered as if it were carried out, but its operation changes nothing.
   * Never throws.
   */
  handle(request: ExchangeRequest, nowMs: number, pretend?: 'pretend'): Reply;
  target(request: ExchangeRequest): RequestTarget;
  /** Fires the timers that are due at `nowMs`, Unix milliseconds. */
  advance(nowMs: number): void;
  /** Unix milliseconds of the next firing; null where no timer is armed. */
  nextFiringMs(): number | null;
  placeOrder(order: OrderRequest, nowMs: number, account?: string): RestingOrder;
  orders(): readonly RestingOrder[];
  timers(): readonly (ServerTimer & Pick<KillSwitchTimer, 'account' | 'dueMs'>)[];
}

interface Route {
  readonly operation: Operation;
  readonly withinLimit: (nowMs: number) => boolean;
  readonly limit: RateLimit;
}

const NOT_FOUND: Refusal = { ...refuse(404, 0, 'Not found.'), form: 'empty' };

/**
 * The exchange of the API document as a state machine: no clock, no I/O and no randomness of its own, so that it runs
 * on real and on virtual time alike, and equal inputs give equal bytes.
 */
export function createSimulatedExchange(options: ExchangeOptions = {}): SimulatedExchange {
  const markets = options.markets ?? 'any';
  const state: ExchangeState = {
    profile: options.profile ?? 'documented',
    startTimeRounding: options.startTimeRounding ?? 'floor',
    cancellationDelayMs: options.cancellationDelayMs ?? 0,
    hasMarket: createMarketCheck(markets),
    timers: createTimerTable(),
    orders: createRestingOrders(),
    log: createEventLog(options.eventCapacity ?? 100_000),
  };
  const routes = createRoutes(options.limits ?? {});
  const keys = new Map((options.keys ?? [DEMO_KEY]).map((key) => [key.key, key]));
  const checkSignatures = options.checkSignatures ?? true;
  const answer = createAnswerer(state, routes, { keys, nonces: createNonceBook(), checkSignatures });
  return {
    profile: state.profile,
    markets,
    hasMarket: state.hasMarket,
    log: state.log,
    handle(request, nowMs, pretend) {
      fireDueTimers(state, nowMs);
      return answer(request, nowMs, pretend === undefined);
    },
    target(request) {
      const route = routes.get(pathOf(request.path));
      const body = route?.operation.auth === 'signed' ? parseCompactObject(bytesOf(request)) : null;
      return { operation: route?.operation.name ?? null, market: marketOf(body) };
    },
    advance: (nowMs) => fireDueTimers(state, nowMs),
    nextFiringMs: () => state.timers.nextDueMs(),
    placeOrder(request, nowMs, account = DEFAULT_ACCOUNT) {
      const order = state.orders.place(account, request);
      const { id: orderId, market, type, side, amount, price } = order;
      state.log.append({ kind: 'order-placed', account, orderId, market, type, side, amount, price }, nowMs);
      return order;
    },
    orders: () => state.orders.all(),
    timers: () => state.timers.all(),
  };
}

function createRoutes(limits: Readonly<Record<string, RateLimit>>): ReadonlyMap<string, Route> {
  return new Map(
    OPERATIONS.map((operation) => {
      const limit = limits[operation.name] ?? operation.limit;
      return [operation.path, { operation, limit, withinLimit: createRateWindow(limit) }];
    }),
  );
}

type Answerer = (request: ExchangeRequest, nowMs: number, apply: boolean) => Reply;

/** The order of the checks: route, method, size, signature and nonce, rate limit, and the operation's own. */
function createAnswerer(
  state: ExchangeState,
  routes: ReadonlyMap<string, Route>,
  rules: SignatureRules,
): Answerer {
  function decide(route: Route, request: ExchangeRequest, nowMs: number, apply: boolean): Decision {
    const { operation } = route;
    const body = bytesOf(request);
    if (request.method !== operation.method) {
      return { answer: refuse(405, 0, `Method not allowed. Allowed: ${operation.method}.`), body: null };
    }
    if (body.length > MAX_BODY_BYTES) {
      return { answer: refuse(413, 9, `Payload too large. Allowed: ${MAX_BODY_BYTES} bytes.`), body: null };
    }
    let account = '';
    let fields: Readonly<Record<string, unknown>> = {};
    if (operation.auth === 'signed') {
      const { headers } = request;
      const signed = checkSignedRequest({ path: operation.path, headers, body }, rules, nowMs);
      if (signed.kind === 'refused') return { answer: signed, body: parseCompactObject(body) };
      account = signed.account;
      fields = signed.body;
    }
    if (!route.withinLimit(nowMs)) return { answer: overLimit(route.limit, state.profile), body: fields };
    return { answer: operation.run({ account, body: fields, nowMs, apply, state }), body: fields };
  }

  return (request, nowMs, apply) => {
    const route = routes.get(pathOf(request.path));
    const { answer, body } =
      route === undefined ? { answer: NOT_FOUND, body: null } : decide(route, request, nowMs, apply);
    if (answer.kind === 'refused') {
      const { status, code } = answer;
      const operation = route?.operation.name ?? null;
      const why = reasonOf(answer);
      state.log.append(
        { kind: 'request-refused', operation, market: marketOf(body), status, code, why },
        nowMs,
      );
    }
    return renderAnswer(answer, route?.operation.auth === 'none' ? 'public' : 'private');
  };
}

interface Decision {
  readonly answer: Answer;
  /** The fields of the body, as far as they were read. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** The document does not say how a limit is reported; at the live exchange the gateway answers with a page. */
function overLimit(limit: RateLimit, profile: Profile): Refusal {
  if (profile === 'live') return { ...refuse(429, 0, 'Too Many Requests'), form: 'html' };
  return refuse(
    429,
    0,
    `Rate limit exceeded: ${limit.requests} requests per ${limit.windowMs / 1000} seconds.`,
  );
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function bytesOf(request: ExchangeRequest): Buffer {
  return typeof request.body === 'string' ? Buffer.from(request.body, 'utf8') : request.body;
}

/** A market name is repeated in the log only as far as any real name is long. */
function marketOf(body: Readonly<Record<string, unknown>> | null): string | null {
  const market = body?.['market'];
  return typeof market === 'string' ? market.slice(0, 64) : null;
}
