import { type Answer, type Refusal, type Reply, reasonOf, refuse, renderAnswer } from './answer.ts';
import { type AccessToken, checkBearerRequest } from './bearer-token.ts';
import { bytesOf, type ExchangeRequest, MAX_BODY_BYTES, pathOf } from './exchange-request.ts';
import type { CallRules, ExchangeState, Profile } from './exchange-state.ts';
import { LISTINGS } from './listings.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import { createRateWindow, type RateLimit } from './rate-window.ts';
import { type Accepted, checkSignedRequest, objectIn, type SignatureRules } from './signed-request.ts';

export interface Route {
  readonly operation: Operation;
  /** Null where the document shows no limit. */
  readonly limit: RateLimit | null;
  /** Each account has a window of its own; public operations have one for all. */
  readonly withinLimit: (account: string, nowMs: number) => boolean;
}

export type Routes = ReadonlyMap<string, Route>;

/** The operations of the document and the listings by path. `limits` by operation name take the place of those of the document. */
export function createRoutes(limits: Readonly<Record<string, RateLimit>>): Routes {
  return new Map(
    [...OPERATIONS, ...LISTINGS].map((operation) => {
      const limit = limits[operation.name] ?? operation.limit;
      return [operation.path, { operation, limit, withinLimit: createWindows(limit) }];
    }),
  );
}

function createWindows(limit: RateLimit | null): Route['withinLimit'] {
  if (limit === null) return () => true;
  const windows = new Map<string, (nowMs: number) => boolean>();
  return (account, nowMs) => {
    const known = windows.get(account);
    if (known !== undefined) return known(nowMs);
    const window = createRateWindow(limit);
    windows.set(account, window);
    return window(nowMs);
  };
}

/** Answers one request at the exchange's time; `how` may change what its operation does. */
export type Answerer = (request: ExchangeRequest, nowMs: number, how: CallRules) => Reply;

export interface AccessRules extends SignatureRules {
  readonly tokens: ReadonlyMap<string, AccessToken>;
}

interface Decision {
  readonly answer: Answer;
  /** The fields of the body, as far as they were read. */
  readonly body: Accepted['body'] | null;
}

/** Every response is JSON in the document; the live exchange answers with nothing. */
const NOT_FOUND = refuse(404, 0, 'Not found.');
const NOTHING_THERE: Refusal = { ...NOT_FOUND, form: 'empty' };
const NOBODY: Accepted = { kind: 'accepted', account: '', body: {} };

/** The order of the checks: route, method, size, key or token, rate limit, and the operation's own. */
export function createAnswerer(state: ExchangeState, routes: Routes, rules: AccessRules): Answerer {
  function access(
    { auth, path }: Operation,
    headers: ExchangeRequest['headers'],
    body: Buffer,
    nowMs: number,
  ) {
    switch (auth.kind) {
      case 'signed': {
        const { permission } = auth;
        return checkSignedRequest({ path, permission, headers, body }, rules, nowMs);
      }
      case 'bearer':
        return checkBearerRequest({ headers, body }, rules);
      case 'none':
        return NOBODY;
    }
  }

  function decide(route: Route, request: ExchangeRequest, nowMs: number, how: CallRules): Decision {
    const { operation, limit } = route;
    const bytes = bytesOf(request);
    if (request.method !== operation.method) {
      return { answer: refuse(405, 0, `Method not allowed. Allowed: ${operation.method}.`), body: null };
    }
    if (bytes.length > MAX_BODY_BYTES) {
      return { answer: refuse(413, 9, `Payload too large. Allowed: ${MAX_BODY_BYTES} bytes.`), body: null };
    }
    const accepted = access(operation, request.headers, bytes, nowMs);
    if (accepted.kind === 'refused') return { answer: accepted, body: objectIn(bytes) };
    const { account, body } = accepted;
    if (limit !== null && !route.withinLimit(account, nowMs)) {
      return { answer: overLimit(limit, state.profile), body };
    }
    return { answer: operation.run({ account, body, nowMs, ...how, state }), body };
  }

  return (request, nowMs, how) => {
    const route = routes.get(pathOf(request));
    const { answer, body } =
      route === undefined
        ? { answer: state.profile === 'live' ? NOTHING_THERE : NOT_FOUND, body: null }
        : decide(route, request, nowMs, how);
    if (answer.kind === 'refused') {
      const { status, code } = answer;
      const operation = route?.operation.name ?? null;
      const why = reasonOf(answer);
      state.log.append(
        { kind: 'request-refused', operation, market: marketOf(body), status, code, why },
        nowMs,
      );
    }
    const isPublic = route === undefined ? isPublicPath(request) : route.operation.auth.kind === 'none';
    return renderAnswer(answer, isPublic ? 'public' : 'private');
  };
}

function isPublicPath(request: ExchangeRequest): boolean {
  return pathOf(request).startsWith('/api/v4/public/');
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

/** What a request asks for, read without any check. */
export interface RequestTarget {
  /** Null where no operation has this path. */
  readonly operation: string | null;
  /** Null where the body names none. */
  readonly market: string | null;
  /** The API key that the request names; null where it names none. */
  readonly key: string | null;
}

export function targetOf(request: ExchangeRequest, routes: Routes): RequestTarget {
  const operation = routes.get(pathOf(request))?.operation;
  const body = operation?.method === 'POST' ? objectIn(bytesOf(request)) : null;
  return { operation: operation?.name ?? null, market: marketOf(body), key: keyOf(request) };
}

function keyOf({ headers }: ExchangeRequest): string | null {
  const key = headers['x-txc-apikey'];
  return typeof key === 'string' ? key : null;
}

/** A market name is repeated in the log only as far as any real name is long. */
function marketOf(body: Accepted['body'] | null): string | null {
  const market = body?.['market'];
  return typeof market === 'string' ? market.slice(0, 64) : null;
}
