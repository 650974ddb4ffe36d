import pRetry from 'p-retry';
import type { FailureReason, Outcome, ServerTimer } from '../core/events.ts';
import type { Instant } from '../core/time.ts';
import type { Cancel, Clock, Exchange, PingOutcome, SyncRequest } from '../ports.ts';
import { isLoopback, parseHttpDate, type Redact, redact, tidy } from '../util/text.ts';
import { classifyPing, classifySync, firstHeader, isRefusal, type Reply, type Verdict } from './classify.ts';
import { ArgumentError, NetworkError } from './errors.ts';
import { type Fields, type Operation, ping, syncKillSwitch, timerFields } from './operations.ts';
import {
  createNonceSource,
  createServerClock,
  encodePayload,
  type NonceMode,
  type NonceSource,
  type ServerClock,
  secretFlaw,
  signPayload,
} from './sign.ts';
import { createTransport, type TransportOptions } from './transport.ts';
import type { Transport, WireContent, WireRequest, WireResponse, WireResult } from './wire.ts';

export interface Credentials {
  readonly key: string;
  readonly secret: string;
}

interface Signer extends Credentials {
  readonly nonces: NonceSource;
}

export interface Delivery extends Pick<WireRequest, 'base' | 'fresh' | 'mayWrite'> {
  /** Called each time that the request is signed. */
  readonly signed?: () => void;
  /** The access token of an operation with `bearer` authentication; fit for a header. */
  readonly bearer?: string | undefined;
}

interface Judged {
  readonly kind: string;
  readonly timer?: ServerTimer;
  readonly detail?: string;
}

export type Session = ReturnType<typeof createSession>;

interface Signed extends WireContent {
  readonly nonce: string | null;
  readonly secrets: readonly string[];
}

const NOT_SIGNED: Signed = { nonce: null, body: null, headers: {}, secrets: [] };

/** Without this header an answer may come in any content coding. */
const UNCODED = { 'Accept-Encoding': 'identity' };

/** Verdicts that show that the exchange has taken the nonce. */
const NONCE_TAKEN: readonly string[] = ['applied', 'deleted', 'refused', 'answered'] satisfies (
  | Verdict
  | Reply<unknown>
)['kind'][];

function signedRequest(fields: Fields & { readonly nonce: string }, { key, secret }: Credentials): Signed {
  const body = JSON.stringify(fields);
  const payload = encodePayload(body);
  const signature = signPayload(payload, secret);
  const headers = {
    'Content-type': 'application/json',
    'X-TXC-APIKEY': key,
    'X-TXC-PAYLOAD': payload,
    'X-TXC-SIGNATURE': signature,
  };
  return { nonce: fields.nonce, body, headers, secrets: [key, secret, payload, signature] };
}

/** A request without a key. Where it shows an access token, the body is what the caller gives, as it is. */
function unsignedRequest({ authentication }: Operation, fields: Fields, token: string): Signed {
  if (authentication === 'none') return NOT_SIGNED;
  const headers = { 'Content-type': 'application/json', Authorization: `Bearer ${token}` };
  return { nonce: null, body: JSON.stringify(fields), headers, secrets: [token] };
}

/** Throws where key or secret do not fit into a header, which fails the call and not the program. */
function usable({ key, secret }: Credentials): Credentials {
  for (const [name, text] of Object.entries({ key, secret })) {
    const flaw = secretFlaw(text);
    if (flaw !== null) throw new TypeError(`${name} is ${flaw}; allowed: text of visible ASCII characters`);
  }
  return { key, secret };
}

/** The secrets that no text may repeat. The exchange knows key and secret also where the request does not carry them. */
function secretsOf({ secrets }: Signed, credentials: () => Credentials): readonly string[] {
  try {
    const { key, secret } = usable(credentials());
    return [...secrets, key, secret];
  } catch {
    return secrets;
  }
}

function unsent(cause: unknown): WireResult {
  const detail = `the API key could not be read: ${cause instanceof Error ? cause.message : 'unknown error'}`;
  return { kind: 'failed', reason: 'auth', detail, maybeApplied: false, cause };
}

/** The `Date` of an answer, Unix milliseconds; null where it has none. */
function dateOf(result: WireResult): number | null {
  const header = result.kind === 'response' ? firstHeader(result.headers, 'date') : null;
  return header === null ? null : parseHttpDate(header);
}

/** Learns from an answer about nonces and the exchange's clock. Adds advice to the verdict where no nonce is accepted. */
function createLearner(
  { clock, nonce: mode }: Pick<ExchangeOptions, 'clock' | 'nonce'>,
  serverClock: ServerClock,
) {
  return function learn<V extends Judged>(
    result: WireResult,
    verdict: V,
    { nonce }: Signed,
    { nonces, sent }: { nonces: NonceSource | undefined; sent: Instant },
  ): V {
    const { kind, timer, detail } = verdict;
    if (nonce !== null && NONCE_TAKEN.includes(kind)) nonces?.accepted(nonce);
    // Reading the clock costs about as much as signing.
    if (kind !== 'nonce' && mode === 'increasing') return verdict;
    const now = clock.now();
    const serverDateMs = dateOf(result);
    if (serverDateMs !== null) serverClock.observe(serverDateMs / 1000, sent, now);
    if (timer !== undefined) serverClock.observe(timer.startTime, sent, now, 'stamp');
    if (nonce === null || nonces === undefined || kind !== 'nonce') return verdict;
    serverClock.doubt(Number(nonce), sent, now);
    const advice = nonces.refused(nonce, serverDateMs, now);
    return advice === null ? verdict : { ...verdict, detail: `${detail}: ${advice}` };
  };
}

/** Nonces and signatures of each API key that is in force in turn, and the estimate of the exchange's clock. */
export function createSession(options: Omit<ExchangeOptions, 'bases'> & { transport: Transport }) {
  const { transport, clock, credentials, hidden, nonce: mode, userAgent = 'killswitchd' } = options;
  const serverClock = createServerClock();
  /** By key: how far ahead the nonces of one had to be says nothing about another one. */
  const sources = new Map<string, NonceSource>();
  const window = mode === 'window' && { nonceWindow: true };
  const learn = createLearner(options, serverClock);

  function signerOf(usableOnes: Credentials): Signer {
    const { key } = usableOnes;
    const nonces = sources.get(key) ?? createNonceSource(mode, serverClock);
    sources.set(key, nonces);
    return { ...usableOnes, nonces };
  }

  return {
    /**
     * Signs and sends one request. `judge` turns what came back into a verdict; `settled` is called with it exactly
     * once, never synchronously. Never throws. The returned function gives up: reason `timeout`.
     */
    call<V extends Judged>(
      operation: Operation,
      fields: Fields,
      { base, fresh, signed: tell, mayWrite, bearer = '' }: Delivery,
      judge: (result: WireResult, redact: Redact) => V,
      settled: (verdict: V) => void,
    ): Cancel {
      const { method, path, maxReplyBytes: maxBodyBytes } = operation;
      let signer: Signer | null = null;
      try {
        if (operation.authentication === 'signed') signer = signerOf(usable(credentials()));
      } catch (cause) {
        queueMicrotask(() => settled(judge(unsent(cause), tidy)));
        return () => undefined;
      }
      let sent = clock.now();
      let signed = NOT_SIGNED;
      const content = () => {
        sent = clock.now();
        signed =
          signer === null
            ? unsignedRequest(operation, fields, bearer)
            : signedRequest({ request: path, nonce: signer.nonces.next(sent), ...window, ...fields }, signer);
        tell?.();
        return { headers: { 'User-Agent': userAgent, ...UNCODED, ...signed.headers }, body: signed.body };
      };
      const hide: Redact = (text) => {
        const own = signer === null ? secretsOf(signed, credentials) : signed.secrets;
        return redact(text, [...own, ...(hidden?.() ?? [])]);
      };
      const verdictOf = (result: WireResult) => judge(result, hide);
      let judged: V | null = null;
      const isAnswer = (response: WireResponse) => {
        judged = verdictOf(response);
        return NONCE_TAKEN.includes(judged.kind) || isRefusal(response);
      };
      const request = { base, method, path, content, fresh, mayWrite, maxBodyBytes, isAnswer };
      return transport.send(request, (result) =>
        settled(learn(result, judged ?? verdictOf(result), signed, { nonces: signer?.nonces, sent })),
      );
    },
  };
}

/** One renewal, trip or delete for the keeper, at the base address `base`; as the port `Exchange.sync` says. */
export function startSync(
  session: Session,
  base: string,
  request: SyncRequest,
  settled: (outcome: Outcome) => void,
): Cancel {
  const judge = (result: WireResult, hide: Redact) => classifySync(result, request, hide);
  return session.call(syncKillSwitch, timerFields(request), { ...request, base }, judge, settled);
}

/** One repetition after 0.05 to 0.1 s. */
const BACKOFF = { retries: 1, minTimeout: 50, maxTimeout: 100, randomize: true, unref: true } as const;

/** The first attempt of a ping may use half of the time, so that a second one on a fresh connection still fits. */
export const FIRST_SHARE = 0.5;

/**
 * Pings one base address, with one retry over a fresh connection: a lost keep-alive connection does not mean that
 * the exchange is down. Gives up after `timeoutMs` altogether. Calls `settled` exactly once, never synchronously; the returned function
 * gives up with reason `aborted`.
 */
function startPing(
  session: Session,
  clock: Clock,
  base: string,
  timeoutMs: number,
  settled: (outcome: PingOutcome) => void,
): Cancel {
  const begunMs = clock.now().monoMs;
  const stopping = new AbortController();
  const { signal } = stopping;
  const stop = (reason: FailureReason, detail: string) => stopping.abort(new NetworkError(detail, reason));

  function attempt(number: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const sentMs = clock.now().monoMs;
      const delivery = { base, fresh: number > 1, mayWrite: () => !signal.aborted };
      const cancel = session.call(ping, {}, delivery, classifyPing, (verdict) => {
        cancelShare();
        if (verdict.kind === 'answered') resolve(clock.now().monoMs - sentMs);
        else reject(new NetworkError(verdict.detail, verdict.reason));
      });
      const cancelShare = number > 1 ? () => undefined : clock.after(timeoutMs * FIRST_SHARE, cancel);
      signal.addEventListener('abort', cancel);
    });
  }

  const cancelDeadline = clock.after(timeoutMs, () => stop('timeout', `no answer within ${timeoutMs} ms`));
  void pRetry(attempt, {
    ...BACKOFF,
    signal,
    // Asking again at once is what a rate limit is against.
    shouldRetry: ({ error }) => !(error instanceof NetworkError && error.reason === 'rate_limited'),
  })
    .then(
      (latencyMs): PingOutcome => ({ ok: true, latencyMs }),
      ({ reason, message: detail }: NetworkError): PingOutcome => {
        return { ok: false, latencyMs: clock.now().monoMs - begunMs, reason, detail };
      },
    )
    .then((outcome) => {
      cancelDeadline();
      settled(outcome);
    });
  return () => stop('aborted', 'the ping was given up');
}

export interface ExchangeOptions extends TransportOptions {
  /** Base addresses in the order in which `base` indexes them: https, or http to the loopback. */
  readonly bases: readonly string[];
  /** Whether plain http may also go to other hosts: to a test exchange. */
  readonly allowPlainHttp?: boolean;
  /** Asked before every signed request, and after an unsigned one that failed, so that its error does not repeat the key. */
  readonly credentials: () => Credentials;
  /** Other secrets that no text may repeat, such as those of before a rotation. */
  readonly hidden?: () => readonly string[];
  readonly nonce: NonceMode;
  readonly userAgent?: string;
  /** Replaces the wire, for tests. */
  readonly transport?: Transport;
}

/**
 * The origin of a base address. Throws an ArgumentError where it is not `https://host[:port]`, or `http://` of the
 * loopback, or of any host where that is allowed: the headers carry the API key.
 */
function originOf(base: string, allowPlainHttp: boolean): string {
  const wrong = (problem: string) => new ArgumentError('bases', `exchange address ${problem}`);
  if (!URL.canParse(base)) throw wrong(`"${base}" is not a URL; write https://HOST[:PORT]`);
  const { protocol, username, password, pathname, search, hash, hostname, host, origin } = new URL(base);
  if (protocol !== 'https:' && protocol !== 'http:')
    throw wrong(`with "${protocol}"; allowed: https: (http: only to loopback)`);
  if (username !== '' || password !== '') throw wrong(`of ${host} names a user or password; write ${origin}`);
  if (pathname !== '/' || search !== '' || hash !== '')
    throw wrong(`"${base}" goes on after the host; write ${origin}`);
  if (host.endsWith(':0'))
    throw wrong(`"${base}" has port 0, where nobody listens; write ${protocol}//HOST[:PORT]`);
  if (protocol === 'https:' || allowPlainHttp || isLoopback(hostname)) return origin;
  const only = 'plain http is allowed only to 127.0.0.1, [::1] or localhost';
  throw wrong(`"${base}": ${only}; write https://${host}`);
}

export type Access = ReturnType<typeof createAccess>;

/**
 * What all who use one API key share: its session, the wire under it, and the base addresses. What is in flight at its
 * `close` settles as failed with reason `aborted`. Throws an ArgumentError where a base address is not allowed.
 */
export function createAccess(options: ExchangeOptions) {
  const { clock, allowPlainHttp = false } = options;
  const origins = options.bases.map((base) => originOf(base, allowPlainHttp));
  const transport = options.transport ?? createTransport({ ...options, bases: origins });
  const session = createSession({ ...options, transport });
  return { session, clock, origins, close: () => transport.close() };
}

/** The exchange over HTTP. Throws at once where a base address is not allowed; afterwards nothing throws. */
export function createExchange(options: ExchangeOptions): Exchange & Pick<Access, 'close'> {
  const { session, clock, origins, close } = createAccess(options);
  const originAt = (base: number) => origins[base] ?? `base address ${base}`;
  return {
    sync: (request, settled) => startSync(session, originAt(request.base), request, settled),
    ping: (base, timeoutMs, settled) => startPing(session, clock, originAt(base), timeoutMs, settled),
    close,
  };
}
