import type { Outcome, ServerTimer } from '../core/events.ts';
import type { Instant } from '../core/time.ts';
import type { Cancel, Clock, SyncRequest } from '../ports.ts';
import { parseHttpDate, type Redact, redact, tidy } from '../util/text.ts';
import { classifySync, firstHeader, type Reply, type Verdict } from './classify.ts';
import { createNonceSource, createServerClock, type NonceMode, type NonceSource } from './nonce.ts';
import { type Operation, syncKillSwitch } from './operations.ts';
import { encodePayload, signPayload } from './sign.ts';
import type { Transport, WireContent, WireResult } from './wire.ts';

export interface Credentials {
  readonly key: string;
  readonly secret: string;
}

/** How one request is to be sent. */
export interface Delivery {
  /** Origin of a base address. */
  readonly base: string;
  readonly fresh: boolean;
  /** Called each time that the request is signed. */
  readonly signed?: () => void;
  readonly mayWrite: () => boolean;
  /** The access token of an operation with `bearer` authentication; fit for a header. */
  readonly bearer?: string | undefined;
}

/** What the session itself reads of a verdict. */
interface Judged {
  readonly kind: string;
  readonly timer?: ServerTimer;
  readonly detail?: string;
}

/** The one place of an API key: its nonces, its signatures and what the answers tell about the exchange's clock. */
export interface Session {
  /**
   * Signs and sends one request. `judge` turns what came back into a verdict; `settled` is called with it exactly
   * once, never synchronously. Never throws. The returned function gives up: reason `timeout`.
   */
  call<Arguments, V extends Judged>(
    operation: Operation<Arguments>,
    given: Arguments,
    delivery: Delivery,
    judge: (result: WireResult, redact: Redact) => V,
    settled: (verdict: V) => void,
  ): Cancel;
}

export interface SessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Asked before every signed request, so that they can be changed while it runs. */
  readonly credentials: () => Credentials;
  readonly nonce: NonceMode;
  readonly userAgent: string;
  /** Replaces the source of nonces, for a simulation. */
  readonly nonces?: NonceSource;
}

interface Signed extends WireContent {
  readonly nonce: string | null;
  readonly secrets: readonly string[];
}

const NOT_SIGNED: Signed = { nonce: null, body: null, headers: {}, secrets: [] };

/** Who does not say so may be answered in any coding. */
const UNCODED = { 'Accept-Encoding': 'identity' };

/** Verdicts that only an exchange gives that took the nonce. */
const NONCE_TAKEN: readonly string[] = ['applied', 'deleted', 'refused', 'answered'] satisfies (
  | Verdict
  | Reply<unknown>
)['kind'][];

function signedRequest<Arguments>(
  operation: Operation<Arguments>,
  given: Arguments,
  { key, secret }: Credentials,
  nonce: string,
  mode: NonceMode,
): Signed {
  const body = JSON.stringify({
    request: operation.path,
    nonce,
    ...(mode === 'window' ? { nonceWindow: true } : {}),
    ...operation.fields(given),
  });
  const payload = encodePayload(body);
  const signature = signPayload(payload, secret);
  const headers = {
    'Content-type': 'application/json',
    'X-TXC-APIKEY': key,
    'X-TXC-PAYLOAD': payload,
    'X-TXC-SIGNATURE': signature,
  };
  return { nonce, body, headers, secrets: [key, secret, payload, signature] };
}

/** A request of somebody who shows an access token instead of a key. The body is what the caller gives, as it is. */
function bearerRequest<Arguments>(operation: Operation<Arguments>, given: Arguments, token: string): Signed {
  const headers = { 'Content-type': 'application/json', Authorization: `Bearer ${token}` };
  return { nonce: null, body: JSON.stringify(operation.fields(given)), headers, secrets: [token] };
}

/** Settles a call for which no request could be built. */
function settleUnsent(cause: unknown, settle: (result: WireResult) => void): Cancel {
  const detail = `the API key could not be read: ${cause instanceof Error ? cause.message : 'unknown error'}`;
  queueMicrotask(() => settle({ kind: 'failed', reason: 'auth', detail, maybeApplied: false, cause }));
  return () => undefined;
}

/** Builds what all requests with one API key share. */
export function createSession({
  transport,
  clock,
  credentials,
  nonce: mode,
  userAgent,
  ...given
}: SessionOptions): Session {
  const serverClock = createServerClock();
  const nonces = given.nonces ?? createNonceSource(mode, serverClock);

  /** Reads the key now. The nonce is taken, and the request is signed, when the returned function is called. */
  function prepare<Arguments>(
    operation: Operation<Arguments>,
    given: Arguments,
    bearer: string,
  ): (now: Instant) => Signed {
    switch (operation.authentication) {
      case 'signed': {
        const key = credentials();
        return (now) => signedRequest(operation, given, key, nonces.next(now), mode);
      }
      case 'bearer':
        return () => bearerRequest(operation, given, bearer);
      case 'none':
        return () => NOT_SIGNED;
    }
  }

  /** Takes what an answer shows of nonce and exchange's clock. The verdict, with what helps where no nonce will count. */
  function learn<V extends Judged>(result: WireResult, verdict: V, nonce: string | null, sent: Instant): V {
    const { kind, timer, detail } = verdict;
    if (nonce !== null && NONCE_TAKEN.includes(kind)) nonces.accepted(nonce);
    // Reading the clock costs about as much as signing.
    if (kind !== 'nonce' && mode === 'increasing') return verdict;
    const now = clock.now();
    const header = result.kind === 'response' ? firstHeader(result.headers, 'date') : null;
    const serverDateMs = header === null ? null : parseHttpDate(header);
    const second = serverDateMs === null ? timer?.startTime : serverDateMs / 1000;
    if (second !== undefined) serverClock.observe(second, sent, now);
    const advice = nonce !== null && kind === 'nonce' ? nonces.refused(nonce, serverDateMs, now) : null;
    return advice === null ? verdict : { ...verdict, detail: `${detail}: ${advice}` };
  }

  return {
    call(operation, given, { base, fresh, signed: tell, mayWrite, bearer = '' }, judge, settled) {
      let sign: (now: Instant) => Signed;
      try {
        sign = prepare(operation, given, bearer);
      } catch (cause) {
        return settleUnsent(cause, (result) => settled(judge(result, tidy)));
      }
      let sent = clock.now();
      let signed = NOT_SIGNED;
      const content = () => {
        sent = clock.now();
        signed = sign(sent);
        tell?.();
        return { headers: { 'User-Agent': userAgent, ...UNCODED, ...signed.headers }, body: signed.body };
      };
      const { method, path, maxReplyBytes: maxBodyBytes } = operation;
      return transport.send({ base, method, path, content, fresh, mayWrite, maxBodyBytes }, (result) => {
        const verdict = judge(result, (text) => redact(text, signed.secrets));
        settled(learn(result, verdict, signed.nonce, sent));
      });
    },
  };
}

/**
 * One renewal, trip or delete for the keeper, at the base address `base`. Calls `settled` as the port `Exchange.sync`
 * says; the returned function gives up.
 */
export function startSync(
  session: Session,
  base: string,
  request: SyncRequest,
  settled: (outcome: Outcome) => void,
): Cancel {
  const { fresh, signed, mayWrite } = request;
  return session.call(
    syncKillSwitch,
    request,
    { base, fresh, signed, mayWrite },
    (result, redact) => classifySync(result, request, redact),
    settled,
  );
}
