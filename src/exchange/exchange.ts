import type { Clock, Exchange } from '../ports.ts';
import { isLoopback } from '../util/text.ts';
import { ArgumentError } from './errors.ts';
import type { NonceMode } from './nonce.ts';
import { startPing } from './ping.ts';
import { type Credentials, createSession, type Session, startSync } from './session.ts';
import { createTransport } from './transport.ts';
import type { Transport } from './wire.ts';

export interface ExchangeOptions {
  /** Base addresses in the order in which `base` indexes them: https, or http to the loopback. */
  readonly bases: readonly string[];
  /** Whether plain http may also go to other hosts: to a test exchange. */
  readonly allowPlainHttp?: boolean;
  /** Asked before every signed request, so that a key can be read again while the daemon runs. */
  readonly credentials: () => Credentials;
  readonly nonce: NonceMode;
  readonly clock: Clock;
  /** Connections per base address; 64 where it is not given. More requests at a time wait for a free one. */
  readonly connections?: number;
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  /** A request without an answer is given up this long after it was written; without it never. */
  readonly requestLifetimeMs?: number | undefined;
  readonly userAgent?: string;
  /** Replaces the wire, for a simulation. */
  readonly transport?: Transport;
}

export const CONNECTIONS = 64;
const USER_AGENT = 'killswitchd';

/** What all who use one API key share: its session, the wire under it, and the base addresses. */
export interface Access {
  readonly session: Session;
  readonly clock: Clock;
  readonly origins: readonly string[];
  /** Ends all connections; what is in flight settles as failed with reason `aborted`. */
  close(): Promise<void>;
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
  if (protocol === 'https:' || allowPlainHttp || isLoopback(hostname)) return origin;
  const only = 'plain http is allowed only to 127.0.0.1, [::1] or localhost';
  throw wrong(`"${base}": ${only}; write https://${host}`);
}

/** Throws an ArgumentError at once where a base address is not allowed. */
export function createAccess(options: ExchangeOptions): Access {
  const { clock, credentials, nonce, allowPlainHttp = false } = options;
  const origins = options.bases.map((base) => originOf(base, allowPlainHttp));
  const transport =
    options.transport ??
    createTransport({
      clock,
      bases: origins,
      connections: options.connections ?? CONNECTIONS,
      ca: options.ca,
      lifetimeMs: options.requestLifetimeMs,
    });
  const userAgent = options.userAgent ?? USER_AGENT;
  const session = createSession({ transport, clock, credentials, nonce, userAgent });
  return { session, clock, origins, close: () => transport.close() };
}

/** What the owner of a client does with it. */
export interface Controls {
  close(): Promise<void>;
}

/**
 * The exchange over HTTP. Throws at once where a base address is not allowed; afterwards nothing throws. `close` ends
 * all connections.
 */
export function createExchange(options: ExchangeOptions): Exchange & Controls {
  const access = createAccess(options);
  const { session, clock, origins } = access;
  const originAt = (base: number) => origins[base] ?? `base address ${base}`;

  return {
    sync: (request, settled) => startSync(session, originAt(request.base), request, settled),
    ping: (base, timeoutMs, settled) => startPing(session, clock, originAt(base), timeoutMs, settled),
    close: () => access.close(),
  };
}
