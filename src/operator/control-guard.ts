import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ControlRefusal } from './control-refusal.ts';
import type { ControlAddress } from './listen-address.ts';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Keeps out who reaches the listener without having been meant to. A web page in a browser of this host may send requests
 * to loopback: it cannot hide its origin, and one that gave its own name the address 127.0.0.1 cannot hide that name.
 * Throws `ControlRefusal`.
 */
export function checkSender(
  headers: IncomingHttpHeaders,
  address: ControlAddress,
  token: () => string | null,
): void {
  const site = headers['sec-fetch-site'];
  if (headers.origin !== undefined || (site !== undefined && site !== 'none')) {
    throw new ControlRefusal(
      'foreign_origin',
      'requests of web pages are refused: this one carries Origin or Sec-Fetch-Site',
    );
  }
  // The permissions of the file decide who may use a Unix socket.
  if (address.kind === 'unix') return;
  if (!isLocalName(headers.host, address.host)) {
    const text = `the Host header names another host; allowed: ${LOCAL_NAMES.join(', ')}, with any port`;
    throw new ControlRefusal('wrong_host', text);
  }
  const wanted = token();
  if (wanted !== null) checkToken(headers.authorization, wanted);
}

function isLocalName(header: string | undefined, listenHost: string): boolean {
  const name = header?.toLowerCase().replace(/:\d{0,5}$/, '');
  return name !== undefined && (LOCAL_NAMES.includes(name) || name === listenHost.toLowerCase());
}

function checkToken(header: string | undefined, token: string): void {
  const given = /^bearer +(.*)$/is.exec(header ?? '')?.[1];
  // Node reads headers byte by byte, so that their text is UTF-8 only after going back to the bytes.
  if (given !== undefined && isSame(Buffer.from(given, 'latin1'), Buffer.from(token))) return;
  const [found, challenge] =
    header === undefined
      ? ['no Authorization header', 'Bearer realm="killswitchd"']
      : ['an Authorization header that does not fit', 'Bearer realm="killswitchd", error="invalid_token"'];
  const text = `found ${found}; allowed: "Authorization: Bearer TOKEN" with the content of control.tokenFile`;
  throw new ControlRefusal('unauthorised', text, { 'www-authenticate': challenge });
}

/** Compares digests, in a time that tells neither the length nor how much of it was right. */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(digest(one), digest(other));
}
