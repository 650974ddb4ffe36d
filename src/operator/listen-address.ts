import { isIP } from 'node:net';
import { isLoopback } from '../util/loopback.ts';

/** Where a listener is bound. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Where the control listener is bound: a Unix socket, or an address that only this host reaches. */
export type ControlAddress =
  | { readonly kind: 'unix'; readonly path: string }
  | ({ readonly kind: 'tcp' } & ListenAddress);

type ListenerName = 'web' | 'control';

/** A listener could not be opened. The message names the address, the cause and what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly address: string;
  /** The code of the operating system, as `EADDRINUSE`, or `EINVAL` for an address that cannot be read. */
  readonly code: string;
  constructor(
    listener: ListenerName,
    address: string,
    code: string,
    problem: string,
    options?: ErrorOptions,
  ) {
    super(`${listener} listener ${address}: ${problem}`, options);
    this.address = address;
    this.code = code;
  }
}

/** Reads `host:port`, `[v6]:port`; throws `ListenError` where it is neither. Port 0 lets the system choose. */
export function parseListenAddress(text: string): ListenAddress {
  const address = readTcp(text);
  if (address !== null) return address;
  throw new ListenError(
    'web',
    text,
    'EINVAL',
    'not an address; write host:port, for example 127.0.0.1:17477',
  );
}

/**
 * Reads `unix:/PATH`, or `host:port` and `[v6]:port` of this host's loopback; throws `ListenError` where it is neither:
 * who reaches the control listener can let orders be cancelled.
 */
export function parseControlAddress(text: string): ControlAddress {
  const refuse = (problem: string): ListenError => new ListenError('control', text, 'EINVAL', problem);
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    if (/^\/.*[^/]$/s.test(path) && !path.includes('\0')) return { kind: 'unix', path };
    throw refuse(
      'not the path of a socket; write unix:/PATH, for example unix:/run/killswitchd/control.sock',
    );
  }
  const address = readTcp(text);
  if (address === null) {
    throw refuse('not an address; write unix:/PATH, or host:port of this host, for example 127.0.0.1:17478');
  }
  if (isLoopback(address.host)) return { kind: 'tcp', ...address };
  throw refuse(
    `other hosts can reach it, and the control listener changes state; write 127.0.0.1:${address.port}`,
  );
}

function readTcp(text: string): ListenAddress | null {
  const match = /^(?:\[(?<six>[0-9a-fA-F:.]+)\]|(?<host>[^:[\]\s]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.['six'] ?? match?.groups?.['host'];
  const port = Number(match?.groups?.['port']);
  return host === undefined || !(port <= 65535) ? null : { host, port };
}

/** What went wrong when a listener was opened, in words. */
export function listenError(address: string, cause: unknown, listener: ListenerName = 'web'): ListenError {
  const code = codeOf(cause);
  const setting = `${listener}.listen or KILLSWITCHD_${listener.toUpperCase()}_LISTEN`;
  const problem = PROBLEMS[code]?.(setting) ?? `cannot be opened (${code})`;
  return new ListenError(listener, address, code, problem, { cause });
}

/** The operating system's code of an error, or `unknown`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

const PROBLEMS: Readonly<Record<string, (setting: string) => string>> = {
  EADDRINUSE: (setting) =>
    `the address is in use by another process, perhaps another killswitchd; stop it, or set ${setting} to another port`,
  EADDRNOTAVAIL: (setting) => `this host has no such address; set ${setting} to one it has`,
  EACCES: (setting) => `ports below 1024 need privileges; set ${setting} to a higher port`,
  ENOTFOUND: () => 'the host name is not known; write an IP address',
};

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
