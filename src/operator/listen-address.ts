import { isIP } from 'node:net';

/** Where a listener is bound. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A listener could not be opened. The message names the address, the cause and what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly address: string;
  /** The code of the operating system, as `EADDRINUSE`, or `EINVAL` for an address that cannot be read. */
  readonly code: string;
  constructor(address: string, code: string, problem: string, options?: ErrorOptions) {
    super(`web listener ${address}: ${problem}`, options);
    this.address = address;
    this.code = code;
  }
}

/** Reads `host:port`, `[v6]:port`; throws `ListenError` where it is neither. Port 0 lets the system choose. */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[(?<six>[0-9a-fA-F:.]+)\]|(?<host>[^:[\]\s]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.['six'] ?? match?.groups?.['host'];
  const port = Number(match?.groups?.['port']);
  if (host === undefined || !(port <= 65535)) {
    throw new ListenError(text, 'EINVAL', 'not an address; write host:port, for example 127.0.0.1:17477');
  }
  return { host, port };
}

/** What went wrong when a listener was opened, in words. */
export function listenError(address: string, cause: unknown): ListenError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  const problem = PROBLEMS[code] ?? `cannot be opened (${code})`;
  return new ListenError(address, code, problem, { cause });
}

const PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'the address is in use by another process, perhaps another killswitchd; stop it, or set web.listen or KILLSWITCHD_WEB_LISTEN to another port',
  EADDRNOTAVAIL: 'this host has no such address; set web.listen or KILLSWITCHD_WEB_LISTEN to one it has',
  EACCES: 'ports below 1024 need privileges; set web.listen or KILLSWITCHD_WEB_LISTEN to a higher port',
  ENOTFOUND: 'the host name is not known; write an IP address',
};

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/**
 * Whether a request with this Host header may be answered on a loopback listener. A web page that points its own name at
 * 127.0.0.1 (DNS rebinding) could otherwise read the status through the browser of whoever looks at it.
 */
export function isLocalHostHeader(header: string | undefined, listenHost: string): boolean {
  if (header === undefined) return true;
  const host = header
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .toLowerCase();
  return host === 'localhost' || host === listenHost.toLowerCase() || isIP(host) !== 0;
}
