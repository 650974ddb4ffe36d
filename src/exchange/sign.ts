import { createHmac } from 'node:crypto';
import type { Instant } from '../core/time.ts';

/** Base64 (standard alphabet, padded) of exactly the bytes of the body: the value of `X-TXC-PAYLOAD`. */
export function encodePayload(body: string): string {
  return Buffer.from(body, 'utf8').toString('base64');
}

/**
 * The value of `X-TXC-SIGNATURE`: lowercase hex HMAC-SHA512 over the base64 text. The key is the secret's UTF-8 bytes
 * as they are written, not decoded from hex or base64.
 */
export function signPayload(payload: string, secret: string): string {
  return createHmac('sha512', secret).update(payload).digest('hex');
}

/**
 * `increasing`: each nonce is greater than every one that the exchange accepted before, in the order of arrival.
 * `window`: a nonce is milliseconds within 5 s of the exchange's clock and unique; the order does not matter.
 */
export const NONCE_MODES = ['increasing', 'window'] as const;
export type NonceMode = (typeof NONCE_MODES)[number];

export interface NonceSource {
  next(now: Instant): string;
  /** The exchange took the nonce: it carried the request out, or refused it for what it asked. */
  accepted(nonce: string): void;
  /**
   * The exchange called the nonce stale. `serverDateMs` is the `Date` of that answer in Unix milliseconds. Returns what
   * helps where the search for a nonce that counts has come to its end, else null.
   */
  refused(nonce: string, serverDateMs: number | null, now: Instant): string | null;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How far the first, second and every further refusal in a row jumps ahead. */
const JUMPS_MS = [1_000, 60_000, HOUR_MS, 6 * HOUR_MS, 36 * HOUR_MS, 9 * DAY_MS, 54 * DAY_MS] as const;
/** Once a nonce was accepted the next cannot be far behind: only somebody else with the same key is ahead of it. */
const SMALL_JUMPS = 2;
/**
 * Where nonces are refused for longer than this, the acceptance before did not come from the exchange, but from something
 * before it. Until then it may be a rate limit: the exchange has the same words for it, and its windows last 10 s.
 */
const CERTAIN_MS = 11_000;
/** Nonces run ahead of the exchange's clock by at most this, and by the same in every process that uses the key. */
const FURTHEST_MS = 64 * DAY_MS;
/**
 * A `Date` that is further ahead of the host's clock is nonsense, and a nonce of that time would be the last of its key.
 * A clock that was never set begins with 1970: it is taken for 2026. Once a nonce was accepted, no `Date` counts that is
 * further ahead than a later process could follow.
 */
const LATEST_DATE_MS = 3653 * DAY_MS;
const RELEASED_MS = 1_767_225_600_000;
const TOO_FAR =
  'every nonce up to 64 days ahead is called stale: a clock was further ahead when this API key was used last, or the exchange says so of too many requests; where it lasts for minutes, make a new API key';
/** The exchange takes nonces up to 5 s beside its clock; a second is left for the error of the estimate and the way. */
const WINDOW_MS = 4_000;
/** Window nonces of more milliseconds than the window has, so that none shares its place; a power of two. */
const REMEMBERED = 16_384;

/** Why a secret does not fit into a header, without showing any of it: what it is instead; null where it fits. */
export function secretFlaw(secret: unknown): string | null {
  if (typeof secret !== 'string') return secret === undefined ? 'missing' : `a ${typeof secret}`;
  return /^[\x21-\x7e]+$/.test(secret) ? null : `text of ${secret.length} characters`;
}

/**
 * Nonces as milliseconds of the wall clock, which never go back when that clock does. A process that was restarted
 * after its clock had run ahead does not know the last nonce that counted: refusals in a row jump further and further
 * ahead, so that the fourth request passes after an error of an hour, and the eighth after one of 64 days. The bound is
 * counted from the exchange's clock where answers show it, so that a later process reaches further than an earlier one.
 */
function increasingNonces(): NonceSource {
  let last = 0;
  let accepted = 0;
  let refusals = 0;
  let rowSinceMs = 0;
  // A refusal of a nonce that was given out before the last jump says nothing about the jump.
  let jumpedAt = 0;

  return {
    next(now) {
      last = Math.max(Math.floor(now.wallMs), last + 1);
      return String(last);
    },
    accepted(nonce) {
      accepted = Math.max(accepted, Number(nonce));
      refusals = 0;
    },
    refused(nonce, shownMs, now) {
      // An overlapping request that was overtaken by a later nonce is refused as well, and needs no jump.
      if (Number(nonce) <= Math.max(accepted, jumpedAt)) return null;
      if (refusals === 0) rowSinceMs = now.monoMs;
      const isSmall = accepted > 0 && now.monoMs - rowSinceMs < CERTAIN_MS;
      const latestMs = isSmall
        ? now.wallMs + FURTHEST_MS
        : Math.max(now.wallMs, RELEASED_MS) + LATEST_DATE_MS;
      const serverDateMs = shownMs !== null && shownMs < latestMs ? shownMs : null;
      // The header shows whole seconds: the server's clock is anywhere in the second that it names.
      const serverMs = serverDateMs === null ? 0 : serverDateMs + 1000;
      const aheadOfUs = serverDateMs !== null && serverDateMs > last;
      const jump = Math.min(refusals, (isSmall ? SMALL_JUMPS : JUMPS_MS.length) - 1);
      const jumpMs = JUMPS_MS[jump] ?? 0;
      const timeMs = serverDateMs === null ? Math.floor(now.wallMs) : serverMs;
      const isTheEnd = last >= timeMs + FURTHEST_MS - HOUR_MS;
      jumpedAt = last;
      refusals += 1;
      if (refusals === 1 && aheadOfUs) last = serverMs;
      else last = Math.max(last, Math.min(Math.max(last, timeMs) + jumpMs, timeMs + FURTHEST_MS));
      return isTheEnd ? TOO_FAR : null;
    },
  };
}

/**
 * Nonces by the estimate of the exchange's clock, no one twice: the first millisecond from there on that was not given
 * out, else the last one before. After 8,000 requests at one moment there is none: the exchange will then call one stale.
 */
function windowNonces(serverClock: ServerClock): NonceSource {
  const given = new Float64Array(REMEMBERED);
  // A remainder by `REMEMBERED` would be the same and take ten times as long: a burst looks at millions.
  const placeOf = (nonce: number) => nonce & (REMEMBERED - 1);
  const isFree = (nonce: number) => given[placeOf(nonce)] !== nonce;
  /** Between the exchange's clock and this one none is free. */
  let ahead = 0;

  function find(serverMs: number): number {
    const lastMs = serverMs + WINDOW_MS;
    let nonce = ahead >= serverMs && ahead <= lastMs ? ahead + 1 : serverMs;
    while (nonce <= lastMs && !isFree(nonce)) nonce += 1;
    ahead = Math.min(nonce, lastMs);
    if (nonce <= lastMs) return nonce;
    nonce = serverMs - 1;
    while (nonce >= serverMs - WINDOW_MS && !isFree(nonce)) nonce -= 1;
    return nonce >= serverMs - WINDOW_MS ? nonce : serverMs;
  }
  return {
    next(now) {
      const nonce = find(Math.floor(serverClock.estimateMs(now)));
      given[placeOf(nonce)] = nonce;
      return String(nonce);
    },
    accepted: () => undefined,
    refused: () => null,
  };
}

/** One source per API key. `serverClock` is what mode `window` goes by; whoever reads answers feeds it. */
export function createNonceSource(mode: NonceMode, serverClock: ServerClock): NonceSource {
  return mode === 'increasing' ? increasingNonces() : windowNonces(serverClock);
}

/** How many answers are remembered: enough to narrow whole seconds to a fraction, few enough to forget drift. */
const SAMPLES = 8;

/** An answer that took longer, through a suspend for example, says too little to correct the estimate. */
const LONGEST_TRIP_MS = 4000;

/** After a refused nonce a clock that was nearer to it than this is no better. */
const BESIDE_MS = 2000;

export type ServerClock = ReturnType<typeof createServerClock>;

/**
 * An estimate of the exchange's clock, for nonces only, never for deciding when a timer lapses: by the `Date` of its
 * answers, where they have none by the stamps of its timers, and before any by the clock of this host. Where a nonce is
 * refused, another one of these counts from then on: a gateway may have a wrong clock.
 */
export function createServerClock() {
  const [date, stamp] = [createEstimate(), createEstimate()];
  const byStamp = (now: Instant) => stamp.at(now) ?? now.wallMs;
  const sources = [(now: Instant) => date.at(now) ?? byStamp(now), byStamp, ({ wallMs }: Instant) => wallMs];
  let [inUse = byStamp] = sources;
  let sinceMs = Number.NEGATIVE_INFINITY;

  return {
    /** An answer showed the whole Unix second `second`: in its `Date` header, or as the startTime of a timer. */
    observe(second: number, sent: Instant, received: Instant, by: 'date' | 'stamp' = 'date'): void {
      (by === 'date' ? date : stamp).observe(second, sent, received);
    },
    /** The exchange refused a nonce as one of another time. It says nothing about a source that was not in use then. */
    doubt(nonceMs: number, sent: Instant, now: Instant): void {
      if (sent.monoMs < sinceMs) return;
      const place = sources.indexOf(inUse);
      const others = [...sources.slice(place + 1), ...sources.slice(0, place)];
      const better = others.find((source) => Math.abs(source(now) - nonceMs) > BESIDE_MS);
      if (better !== undefined) [inUse, sinceMs] = [better, now.monoMs];
    },
    estimateMs: (now: Instant): number => inUse(now),
  };
}

/**
 * Intersects what the last answers allow (Marzullo): a server that showed second `s` somewhere between sending at `a` and
 * receiving at `b` is ahead of the local clock by something in [s - b, s + 1 - a].
 *
 * The local clock is the time since boot, which does not step and goes on during suspend. Where the estimate becomes
 * wrong (a restored virtual machine, a correction at the exchange) the next answer contradicts the older ones, and these
 * are forgotten.
 */
function createEstimate() {
  let samples: { readonly lowMs: number; readonly highMs: number }[] = [];
  let offsetMs: number | null = null;

  return {
    observe(second: number, sent: Instant, received: Instant): void {
      if (offsetMs !== null && received.bootMs - sent.bootMs > LONGEST_TRIP_MS) return;
      const sample = { lowMs: second * 1000 - received.bootMs, highMs: second * 1000 + 1000 - sent.bootMs };
      samples.push(sample);
      if (samples.length > SAMPLES) samples.shift();
      let lowMs = Math.max(...samples.map((known) => known.lowMs));
      let highMs = Math.min(...samples.map((known) => known.highMs));
      if (lowMs > highMs) {
        samples = [sample];
        ({ lowMs, highMs } = sample);
      }
      offsetMs = (lowMs + highMs) / 2;
    },
    /** Unix milliseconds at the exchange; null as long as no answer has been seen. */
    at: (now: Instant): number | null => (offsetMs === null ? null : now.bootMs + offsetMs),
  };
}
