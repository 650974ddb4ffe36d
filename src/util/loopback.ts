import { isIPv4 } from 'node:net';

/**
 * Whether only programs of this host reach `host`: `localhost`, 127.0.0.0/8 or ::1, an IPv6 address with or without its
 * brackets. No name is looked up.
 */
export function isLoopback(host: string): boolean {
  const plain = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/^::ffff:(?=[\d.]+$)/, '');
  return plain === 'localhost' || plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}
