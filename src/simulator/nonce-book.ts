import { type Refusal, refuse } from './answer.ts';
import type { Profile } from './exchange-state.ts';

/** Nonces beside the exchange's clock further than this are refused in a nonce window (the live exchange: 5 s). */
export const NONCE_WINDOW_MS = 5000;

/** Digits longer than this are no nonce: far more than nanoseconds since 1970 need. */
const MAX_DIGITS = 32;

/** The API document calls a nonce a unique request identifier: any text may be one, up to this length. */
const MAX_TEXT = 255;

/** So many texts are remembered per key; the oldest could then be used again. */
const TEXTS_KEPT = 100_000;

export interface NonceBook {
  /**
   * Accepts or refuses the nonce of one request and remembers it if accepted. `window` is the request's `nonceWindow`.
   * Returns null where it is accepted.
   */
  judge(key: string, nonce: unknown, window: unknown, nowMs: number): Refusal | null;
}

interface KeyNonces {
  lastAccepted: string;
  /** Nonces used in a window, in order of use. */
  readonly used: Set<string>;
  /** Nonces that are no digits, in order of use. */
  readonly texts: Set<string>;
}

const STALE = refuse(429, 0, 'Too many requests.');

const MISSING = refuse(400, 9, 'Nonce not provided.');
const NOT_TEXT = refuse(400, 9, 'Nonce must be a string.');
const TOO_LONG = refuse(400, 9, `Nonce may not be longer than ${MAX_TEXT} characters.`);

/**
 * The nonce rules of the live exchange, per API key: strictly greater than the last accepted one, or, with
 * `nonceWindow: true`, within 5 s of the exchange's clock and never used before. The API document has less: a nonce is
 * a string and unique. So the documented profile refuses numbers, and takes text that is no digits once.
 */
export function createNonceBook(profile: Profile): NonceBook {
  const keys = new Map<string, KeyNonces>();
  return {
    judge(key, nonce, window, nowMs) {
      if (profile === 'documented') {
        const problem = textProblem(nonce);
        if (problem !== null) return problem;
      }
      const nonces = keys.get(key) ?? { lastAccepted: '', used: new Set(), texts: new Set() };
      keys.set(key, nonces);
      const digits = nonceDigits(nonce);
      if (digits === null) {
        const isText = profile === 'documented' && typeof nonce === 'string' && window !== true;
        return isText ? judgeText(nonces.texts, nonce) : MISSING;
      }
      if (window !== undefined && typeof window !== 'boolean') return refuse(400, 9, 'Invalid nonceWindow.');
      if (window === true) return judgeInWindow(nonces.used, digits, nowMs);
      if (!isGreater(digits, nonces.lastAccepted)) return STALE;
      nonces.lastAccepted = digits;
      return null;
    },
  };
}

function textProblem(nonce: unknown): Refusal | null {
  if (nonce === undefined || nonce === null || nonce === '') return MISSING;
  if (typeof nonce !== 'string') return NOT_TEXT;
  return nonce.length > MAX_TEXT ? TOO_LONG : null;
}

function judgeText(texts: Set<string>, nonce: string): Refusal | null {
  if (texts.has(nonce)) return STALE;
  texts.add(nonce);
  for (const oldest of texts) {
    if (texts.size <= TEXTS_KEPT) break;
    texts.delete(oldest);
  }
  return null;
}

function judgeInWindow(used: Set<string>, digits: string, nowMs: number): Refusal | null {
  const aheadMs = Number(digits) - nowMs;
  if (aheadMs < -NONCE_WINDOW_MS) {
    return refuse(400, 0, 'Your nonce is more than 5 seconds lesser than the current nonce.');
  }
  if (aheadMs > NONCE_WINDOW_MS) {
    return refuse(400, 0, 'Your nonce is more than 5 seconds greater than the current nonce.');
  }
  if (used.has(digits)) return STALE;
  for (const old of used) {
    if (Number(old) >= nowMs - NONCE_WINDOW_MS) break;
    used.delete(old);
  }
  used.add(digits);
  return null;
}

/** The nonce without leading zeros; null where it is neither a string of digits nor a whole number. */
function nonceDigits(nonce: unknown): string | null {
  if (typeof nonce === 'number') return Number.isSafeInteger(nonce) && nonce >= 0 ? String(nonce) : null;
  if (typeof nonce !== 'string' || nonce.length > MAX_DIGITS || !/^\d+$/.test(nonce)) return null;
  return nonce.replace(/^0+(?=\d)/, '');
}

/** Compares digits as numbers of any length. */
function isGreater(digits: string, than: string): boolean {
  return digits.length === than.length ? digits > than : digits.length > than.length;
}
