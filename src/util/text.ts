import { isIPv4 } from 'node:net';
import { unescape as decodePercent } from 'node:querystring';

/** A map of keys, as JSON and YAML give it: neither a list nor null. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const REDACTED = '[redacted]';
/** Shorter texts would be found inside ordinary words. */
const SHORTEST_SECRET = 8;
const LONGEST_LINE = 300;
/** Makes a text fit for a log line or an answer. */
export type Redact = (text: string) => string;

/** The text without the secrets of at least 8 visible characters, whatever their case, escapes, encoding and line breaks. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  // What it looks for takes long to build. A `%` before a secret decodes with the first two characters of it.
  const found = bareOf(text.replaceAll(/(?:%[\da-f]{2})+/gi, (bytes) => decodePercent(bytes)));
  return secrets
    .map(bareOf)
    .filter((bare) => bare.length >= SHORTEST_SECRET)
    .filter((bare) => bare.includes('%') || found.includes(bare.slice(2)))
    .toSorted((one, other) => other.length - one.length)
    .reduce((clean, bare) => clean.replaceAll(anyFormOf(bare), REDACTED), text);
}

const bareOf = (text: string) => text.replaceAll(/[\s\\]/g, '').toLowerCase();

/** What escapes and line breaks put between two characters: no part of `bare`, so a match takes no steps back. */
const BETWEEN = String.raw`(?:[\s\\]|%(?:5c|20|09|0a|0d))*`;

function anyFormOf(bare: string): RegExp {
  const characters = Array.from(bare, (character) => {
    const percent = Buffer.from(character).toString('hex').replaceAll(/../g, '%$&');
    return `(?:\\u{${character.codePointAt(0)?.toString(16)}}|${percent})`;
  });
  return new RegExp(characters.join(BETWEEN), 'giu');
}

/**
 * Makes text from outside one line of at most 300 characters, without control characters and without the secrets. The
 * cut comes last: before, it would leave the beginning of a secret standing.
 */
export function redact(text: string, secrets: readonly string[]): string {
  const clean = hideSecrets(plain(text), secrets);
  if (clean.length <= LONGEST_LINE) return clean;
  return `${clean.slice(0, LONGEST_LINE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** A text from outside on one line: it may not start a line of its own, nor steer a terminal. */
export const plain = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim();

/** One line of at most 300 characters, without control characters. */
export const tidy: Redact = (text) => redact(text, []);

/** A longer text is described instead of shown: nobody finds a mistake in it, and it may be a secret in the wrong place. */
const LONGEST_SHOWN = 60;

/** A value of JSON or YAML as a message shows it: short texts quoted, everything else named. */
export function describeValue(value: unknown, nothing = 'null', object = 'an object'): string {
  if (value === undefined || value === null) return nothing;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'object') return object;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return `a ${typeof value}`;
  if (value === '') return 'an empty text';
  return value.length > LONGEST_SHOWN ? `a text of ${value.length} characters` : JSON.stringify(value);
}

/** `1 market`, `2 markets`. */
export const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Names for a message: not more of them than anybody reads. */
export function listed(names: readonly string[], most = 20): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Unix milliseconds of an HTTP `Date` header in IMF-fixdate, as servers send it (RFC 9110 5.6.7); null for anything else. */
export function parseHttpDate(text: string): number | null {
  const ms = Date.parse(text);
  return ms >= 0 && httpDate(ms) === text ? ms : null;
}

/** Unix milliseconds as a `Date` header. */
export const httpDate = (wallMs: number) => new Date(wallMs).toUTCString();

/** Unix milliseconds as `2026-11-20T14:03:22.123Z`. */
export const isoTime = (wallMs: number) => new Date(wallMs).toISOString();

/** Unix milliseconds as `14:03:22`, in UTC as all times that the program shows. */
export const timeOfDay = (wallMs: number) => isoTime(wallMs).slice(11, 19);

/** Whether only programs of this host reach `host`; an IPv6 address may have its brackets. No name is looked up. */
export function isLoopback(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  const four = bare.replace(/^::ffff:(?=[\d.]+$)/, '');
  return bare === 'localhost' || bare === '::1' || (isIPv4(four) && four.startsWith('127.'));
}

/** A text as a 32-bit number (FNV-1a), for seeds and for sharing out. It must not change: shards agree by it. */
export const hashText = (text: string) =>
  text.split('').reduce((hash, unit) => Math.imul(hash ^ unit.charCodeAt(0), 0x01000193), 0x811c9dc5) >>> 0;

/** The code of an error of the system, such as ENOENT; empty for any other. */
export const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
