import { BlockList, isIPv4, isIPv6 } from 'node:net';
import type { ListenAddress } from '../ports.ts';
import { suggest } from '../util/nearest.ts';
import { isLoopback } from '../util/text.ts';
import { fillInBot } from './config.ts';
import { describe } from './problem.ts';

export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** `text` says what was found, what is allowed and what was probably meant. */
  | { readonly kind: 'wrong'; readonly text: string };

/**
 * A base address as its origin, without a trailing slash: https, or http to loopback (with `allowPlainHttp` to any
 * host), and nothing but host and port.
 */
export function checkBaseUrl(text: string, allowPlainHttp = false): Checked<string> {
  const allowed =
    'allowed: https://HOST[:PORT], or http://HOST[:PORT] where HOST is this host (127.0.0.1, [::1], localhost)';
  const wrong = (found: string, meant: string | null): Checked<string> => ({
    kind: 'wrong',
    text: `found ${found}; ${allowed}${suggest(meant)}`,
  });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    // An address that cannot be read may hold a password.
    if (text.includes('@')) return wrong('an address that cannot be read', null);
    const meant = /^[\w.-]+(:\d+)?$/.test(text) ? `https://${text}` : null;
    return wrong(describe(text), meant);
  }
  if (url.username !== '' || url.password !== '')
    return wrong('a user name or password in the address', url.origin);
  if (isPlainAndRemote(url.href) && !allowPlainHttp) {
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

/** Whether what goes to this base address crosses a network without encryption. */
export function isPlainAndRemote(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname);
}

export function warningOfPlainHttp(base: string): string {
  return `exchange.allowPlainHttp: everybody on the way to ${base} can read the API key and change what is sent; for a test exchange only, never with a key that can trade`;
}

const PRIVATE_ADDRESSES = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const) {
  PRIVATE_ADDRESSES.addSubnet(network, prefix, 'ipv4');
}
PRIVATE_ADDRESSES.addAddress('::1', 'ipv6');
PRIVATE_ADDRESSES.addSubnet('fc00::', 7, 'ipv6');
PRIVATE_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');

/** Endings of names that the public DNS does not know: RFC 6761, 6762, 8375, ICANN's `internal`, and Kubernetes' `svc`. */
const PRIVATE_NAMES = /\.(localhost|local|internal|home\.arpa|lan|svc)$/;

/** An address or a name that means this host or one of its own network, whoever asks. */
function isPrivate(host: string): boolean {
  if (isIPv4(host)) return PRIVATE_ADDRESSES.check(host, 'ipv4');
  if (isIPv6(host)) return PRIVATE_ADDRESSES.check(host, 'ipv6');
  return !host.includes('.') || PRIVATE_NAMES.test(host);
}

/**
 * The address at which `bot` is asked whether it lives, in its normal form. Not on the public Internet: whoever answers
 * there would keep the timers of a dead bot armed. What may be a password or a token is not shown.
 */
export function checkLivenessUrl(template: string, bot: string): Checked<string> {
  const text = fillInBot(template, bot);
  const allowed =
    'allowed: http(s)://HOST[:PORT]/PATH where HOST is this host (127.0.0.1, [::1], localhost) or of a private network (10.0.0.7, bot, bot.internal, bot.trading.svc)';
  const wrong = (found: string, meant: string | null = null): Checked<string> => ({
    kind: 'wrong',
    // A suggestion with the name of one bot would be wrong for the others.
    text: `found ${found}; ${allowed}${suggest(text === template ? meant : null)}`,
  });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    if (text.includes('@')) return wrong('an address that cannot be read');
    const shown = text.replace(/[?#].*$/s, '');
    return wrong(describe(shown), /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.test(shown) ? `http://${shown}` : null);
  }
  const bare = `${url.origin}${url.pathname}`;
  if (url.username !== '' || url.password !== '') {
    return wrong('a user name or password in the address', bare);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (/^(0\.0\.0\.0|::)$/.test(host)) {
    const here = new URL(bare);
    here.hostname = host === '::' ? '[::1]' : '127.0.0.1';
    return wrong(`${describe(url.host)}, which is where to listen and not whom to ask`, here.href);
  }
  if (!isPrivate(host)) return wrong(`the host ${describe(url.hostname)}, which is not of a private network`);
  if (text.includes('#')) return wrong('a part after #, which is never sent', bare);
  return { kind: 'ok', value: url.href };
}

/** Why messages cannot be posted to this address, without showing any of it; null where they can. */
export function findUrlFlaw(text: string, isTelegram: boolean): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    return 'found what is no address; allowed: https://HOST/PATH';
  if (url.username !== '' || url.password !== '')
    return 'found a user name or password in the address; allowed: https://HOST/PATH';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (url.protocol === 'http:' && !isPrivate(host))
    return 'found http:// to a host of the public network; allowed: https://HOST/PATH';
  if (isTelegram && !(url.pathname.endsWith('/sendMessage') && url.searchParams.has('chat_id')))
    return 'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT';
  return null;
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

/** Bytes that a Unix socket's path may have: a little less than any system takes (107 on Linux, 103 on others). */
const LONGEST_SOCKET_PATH = 100;

/** `unix:/PATH`, or `HOST:PORT`. An address that other hosts can reach needs a token. */
export function checkControlListen(text: string, hasToken: boolean): Checked<ListenAddress> {
  const wrong = (found: string, meant: string | null = null): Checked<ListenAddress> => ({
    kind: 'wrong',
    text: `found ${found}; allowed: unix:/PATH with at most ${LONGEST_SOCKET_PATH} bytes, or HOST:PORT where HOST is this host (127.0.0.1, [::1], localhost), or any other with control.tokenFile${suggest(meant)}`,
  });
  if (text.startsWith('unix:') || text.startsWith('/')) {
    const path = text.replace(/^unix:/, '').replace(/^\/+/, '/');
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
  if (!hasToken && !isLoopback(address.host)) {
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
