import { isIPv4, isIPv6 } from 'node:net';
import { describe, suggest } from './wording.ts';

export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** `text` says what was found, what is allowed and what was probably meant. */
  | { readonly kind: 'wrong'; readonly text: string };

/** Where a listener binds. `text` is the address as one string, in one form for one address. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly text: string; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly text: string; readonly path: string };

/** An address that only programs of the same host reach. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** A base address as its origin, without a trailing slash: https, or http to loopback, and nothing but host and port. */
export function checkBaseUrl(text: string): Checked<string> {
  const allowed =
    'allowed: https://HOST[:PORT], or http://HOST[:PORT] where HOST is this host (127.0.0.1, [::1], localhost)';
  const wrong = (found: string, meant: string | null): Checked<string> => ({
    kind: 'wrong',
    text: `found ${found}; ${allowed}${suggest(meant)}`,
  });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    // What cannot be read may hold a password all the same.
    if (text.includes('@')) return wrong('an address that cannot be read', null);
    const meant = /^[\w.-]+(:\d+)?$/.test(text) ? `https://${text}` : null;
    return wrong(describe(text), meant);
  }
  if (url.username !== '' || url.password !== '')
    return wrong('a user name or password in the address', url.origin);
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[|\]$/g, ''))) {
    return wrong(
      `${describe(url.origin)}, which is not encrypted and not this host`,
      url.origin.replace('http:', 'https:'),
    );
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || /[?#]/.test(text)) {
    return wrong('more than a host and a port', url.origin);
  }
  return { kind: 'ok', value: url.origin };
}

/** `HOST:PORT` or `[IPV6]:PORT` of the read-only listener. */
export function checkWebListen(text: string): Checked<ListenAddress> {
  const address = readTcp(text);
  if (address !== null) return { kind: 'ok', value: address };
  return {
    kind: 'wrong',
    text: `found ${describe(text)}; allowed: HOST:PORT or [IPV6]:PORT with a port from 0 to 65535${suggest(meantListen(text))}`,
  };
}

/** The bytes that a Unix socket's path may have on Linux, without the closing zero. */
const LONGEST_SOCKET_PATH = 107;

/** `unix:/PATH`, or `HOST:PORT` that only this host reaches. */
export function checkControlListen(text: string): Checked<ListenAddress> {
  const wrong = (found: string, meant: string | null = null): Checked<ListenAddress> => ({
    kind: 'wrong',
    text: `found ${found}; allowed: unix:/PATH with at most ${LONGEST_SOCKET_PATH} bytes, or HOST:PORT where HOST is this host (127.0.0.1, [::1], localhost)${suggest(meant)}`,
  });
  if (text.startsWith('unix:') || text.startsWith('/')) {
    const path = text.replace(/^unix:(\/\/(?=\/))?/, '');
    if (!text.startsWith('unix:/') || text.startsWith('unix://')) {
      return wrong(describe(text), path.startsWith('/') && path.length > 1 ? `unix:${path}` : null);
    }
    const bytes = Buffer.byteLength(path);
    if (bytes > LONGEST_SOCKET_PATH) return wrong(`a path of ${bytes} bytes`);
    if (path.endsWith('/') || path.includes('\0')) return wrong(describe(text));
    return { kind: 'ok', value: { kind: 'unix', text, path } };
  }
  const address = readTcp(text);
  if (address === null) return wrong(describe(text), meantListen(text));
  if (!isLoopback(address.host)) {
    return wrong(`${describe(text)}, which other hosts can reach`, `127.0.0.1:${address.port}`);
  }
  return { kind: 'ok', value: address };
}

function readTcp(text: string): (ListenAddress & { kind: 'tcp' }) | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/@]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) return null;
  const [, bracketed, plain] = match;
  if (bracketed !== undefined) {
    if (!isIPv6(bracketed)) return null;
    const host = new URL(`http://[${bracketed}]`).hostname.slice(1, -1);
    return { kind: 'tcp', text: `[${host}]:${port}`, host, port };
  }
  const host = (plain ?? '').toLowerCase();
  const isName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(host) && !/^[\d.]+$/.test(host);
  return isIPv4(host) || isName ? { kind: 'tcp', text: `${host}:${port}`, host, port } : null;
}

function meantListen(text: string): string | null {
  const bare = text.replace(/^https?:\/\//, '').replace(/\/$/, '');
  const ipv6 = /^(.+):(\d+)$/.exec(bare);
  const candidates = [
    bare,
    `127.0.0.1:${bare}`,
    `0.0.0.0${bare}`,
    ...(ipv6 !== null && isIPv6(ipv6[1] ?? '') ? [`[${ipv6[1]}]:${ipv6[2]}`] : []),
  ];
  return candidates.find((candidate) => candidate !== text && readTcp(candidate) !== null) ?? null;
}
