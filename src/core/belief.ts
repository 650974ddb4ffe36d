import type { ServerTimer } from './events.ts';
import type { Certainty } from './notice.ts';
import { ROUNDING_MS, TRIP_MS } from './promise.ts';
import { type Attempt, type Belief, type CoreState, type MarketState, type Write } from './state.ts';

/** Clocks of two hosts drift apart by at most this share: belief gives it away on both sides. */
const DRIFT = 200e-6;
/** A request written so long after an answer does not get the same stamps, which are whole seconds, from a new timer. */
const REPEATED_STAMPS_MS = 1500;
/** Each cache between here and the exchange may repeat an answer of its own. */
const STAMPS_KEPT = 4;

/**
 * Folds what is known of a market's timer from the requests that can decide about it. Two rules hold all of it:
 *
 * - A confirmed renewal leaves the timer armed from when it was written until a timeout later, unless something else may
 *   be carried out behind it: a renewal then leaves its own timeout from there, a delete leaves nothing.
 * - Whatever may still be carried out, or was, may fire a timeout after the latest moment at which that happens.
 *
 * The exchange counts whole seconds and may round either way, so that a second is given away on both sides.
 */
export function fold(state: CoreState, market: MarketState): void {
  const { belief } = market;
  const confirmed = confirmedOf(belief);
  const counting = belief.writes.filter((write) => !isReplaced(state, confirmed, write));
  belief.notBefore = null;
  let notAfterMs = Number.NEGATIVE_INFINITY;
  let armedUntilMs = Number.NEGATIVE_INFINITY;
  for (const write of counting) {
    if (write.purpose === 'delete') continue;
    notAfterMs = Math.max(notAfterMs, latestFiring(state, write));
    if (write.status !== 'confirmed') continue;
    armedUntilMs = Math.max(armedUntilMs, write.at.awakeMs + leastMs(write.shortestMs));
    const lasts = surelyLasts(state, write, counting);
    if (lasts !== null && lasts.lifeMs >= (belief.notBefore?.lifeMs ?? Number.NEGATIVE_INFINITY))
      belief.notBefore = lasts;
  }
  belief.notAfterMs = notAfterMs === Number.NEGATIVE_INFINITY ? null : notAfterMs;
  if (armedUntilMs > Number.NEGATIVE_INFINITY) market.armedUntilAwakeMs = armedUntilMs;
}

/** No nonce of one of these keys keeps a request of the other one from being carried out. */
function areFree({ settings }: CoreState, oneKey: number, otherKey: number): boolean {
  return settings.nonce === 'window' || oneKey !== otherKey;
}

/** Could `other` be carried out behind `write`? What is newer always can, what is older where its nonce does not matter. */
function mayFollow(state: CoreState, other: Write, write: Write): boolean {
  if (other === write) return false;
  return (
    other.order > write.order || (areFree(state, other.key, write.key) && other.untilMs > write.at.monoMs)
  );
}

/**
 * A newer request was confirmed that this one can no longer follow. With rising nonces that is every earlier one of its
 * key, which is refused as stale when it arrives.
 */
function isReplaced(state: CoreState, confirmed: readonly Write[], write: Write): boolean {
  return confirmed.some((newer) => newer.order > write.order && !mayFollow(state, write, newer));
}

function confirmedOf({ writes }: Belief): Write[] {
  return writes.filter(({ status }) => status === 'confirmed');
}

/** Is it a confirmed timer that may still fire? Else nobody knows of one, and the orders may stay. */
export function isConfirmed({ writes }: Belief): boolean {
  return writes.some(({ purpose, status }) => purpose !== 'delete' && status === 'confirmed');
}

/** Until when a confirmed renewal surely keeps the timer armed; null where a delete may have ended it. */
function surelyLasts(state: CoreState, write: Write, counting: readonly Write[]): Belief['notBefore'] {
  let lifeMs = write.at.lifeMs + leastMs(write.shortestMs);
  let awakeMs = write.at.awakeMs + leastMs(write.shortestMs);
  for (const other of counting) {
    if (!mayFollow(state, other, write)) continue;
    if (other.purpose === 'delete') return null;
    const later = other.at.monoMs > write.at.monoMs ? other.at : write.at;
    lifeMs = Math.min(lifeMs, later.lifeMs + leastMs(other.shortestMs));
    awakeMs = Math.min(awakeMs, later.awakeMs + leastMs(other.shortestMs));
  }
  return { lifeMs, awakeMs };
}

function leastMs(timeoutMs: number): number {
  return (timeoutMs - ROUNDING_MS) * (1 - DRIFT);
}

function latestFiring({ settings }: CoreState, { untilMs, longestMs }: Write): number {
  return untilMs + longestMs * (1 + DRIFT) + ROUNDING_MS + settings.cancellationDelayMs;
}

/**
 * In a nonce window requests of an earlier life of this daemon may still be on their way: a delete, or a renewal that
 * leaves anything from the shortest timer, as a trip does, to the longest. With rising nonces the first accepted request
 * fences them.
 */
export function believeEarlierLife(state: CoreState, market: MarketState): void {
  const untilMs = state.startedMs + state.settings.requestLifetimeMs;
  if (state.settings.nonce !== 'window' || state.now.monoMs >= untilMs) return;
  const stray: Omit<Write, 'purpose'> = {
    id: 0,
    order: 0,
    key: state.key.changes,
    at: state.moment,
    status: 'unknown',
    left: true,
    untilMs,
    shortestMs: TRIP_MS,
    longestMs: market.settings.timeoutMs,
  };
  market.belief.writes.push({ ...stray, purpose: 'renew' }, { ...stray, purpose: 'delete' });
  fold(state, market);
}

/** A request is about to be written. It may leave until it is given up, and be carried out within its lifetime after that. */
export function believeWritten(state: CoreState, attempt: Attempt): void {
  attempt.market.belief.writes.push(attempt);
  fold(state, attempt.market);
}

/** Its first byte leaves at `monoMs`: from here on its lifetime counts. */
export function believeLeft(state: CoreState, attempt: Attempt, monoMs: number): void {
  attempt.left = true;
  attempt.untilMs = monoMs + state.settings.requestLifetimeMs;
  fold(state, attempt.market);
}

/** The exchange did not, and will not, carry the attempt out: it leaves no trace. */
export function believeNotApplied(state: CoreState, attempt: Attempt): void {
  const { market } = attempt;
  market.belief.writes = market.belief.writes.filter((write) => write !== attempt);
  fold(state, market);
}

/** No answer that can be believed: the exchange may carry the attempt out at any time within its lifetime. */
export function believeUnknown(state: CoreState, attempt: Attempt): void {
  attempt.status = 'unknown';
  tidy(state, attempt.market);
}

export function believeDeleted(state: CoreState, attempt: Attempt): void {
  attempt.status = 'confirmed';
  attempt.untilMs = state.now.monoMs;
  attempt.market.belief.server = null;
  tidy(state, attempt.market);
}

/** Does the exchange repeat an earlier answer, as a cache does? Stamps that stand still are no confirmation. */
export function isRepeated({ belief }: MarketState, { purpose, at }: Write, timer: ServerTimer): boolean {
  const before = toldBefore(belief, timer);
  return purpose !== 'delete' && before !== undefined && at.monoMs - before.atMs > REPEATED_STAMPS_MS;
}

function toldBefore({ told }: Belief, { startTime, cancellationTime }: ServerTimer) {
  return told.find(
    (stamps) => stamps.startTime === startTime && stamps.cancellationTime === cancellationTime,
  );
}

/**
 * The exchange confirmed a renewal or a trip. Says whether the timer before it had fired, how many renewals of unknown
 * outcome could have bridged the gap, and how the answer differs from what was asked for, if it does.
 */
export function believeApplied(state: CoreState, attempt: Attempt, timer: ServerTimer) {
  const { market } = attempt;
  const { belief } = market;
  const grantedMs = (timer.cancellationTime - timer.startTime) * 1000;
  const askedMs = attempt.longestMs;
  const altered = describeAlteration(attempt, timer, grantedMs);
  const unresolved = belief.writes.filter((write) => mayHaveBridged(state, write, attempt)).length;
  const lapse = judgeLapse(state, belief, timer, unresolved);
  const known = belief.server;
  const { startTime, cancellationTime } = timer;
  // By the stamps and not by the numbers: in a nonce window an older request may be carried out behind a newer one.
  if (known === null || startTime >= known.startTime) belief.server = { startTime, cancellationTime };
  if (toldBefore(belief, timer) === undefined) {
    const told = { startTime, cancellationTime, atMs: state.now.monoMs };
    belief.told = [...belief.told.slice(1 - STAMPS_KEPT), told];
  }
  attempt.status = 'confirmed';
  attempt.untilMs = state.now.monoMs;
  attempt.shortestMs = Math.max(0, Math.min(askedMs, grantedMs));
  attempt.longestMs = Math.max(askedMs, grantedMs);
  tidy(state, market);
  // A request that a newer answer has overtaken brings back no timer that is known to be gone.
  if (known === null && !belief.writes.includes(attempt)) belief.server = null;
  return { lapse, unresolved, altered };
}

/** Could this request of unknown outcome have kept the timer alive until the confirmed one came? */
function mayHaveBridged(state: CoreState, write: Write, confirmed: Attempt): boolean {
  if (write === confirmed || write.status === 'confirmed' || write.purpose === 'delete') return false;
  if (isReplaced(state, confirmedOf(confirmed.market.belief), write)) return false;
  if (latestFiring(state, write) <= confirmed.at.monoMs) return false;
  return write.order < confirmed.order || areFree(state, write.key, confirmed.key);
}

/**
 * A renewal that starts after the previous timer's end made a new timer: the old one had fired. Both numbers are of
 * the exchange's own clock, so neither offset nor suspend matters. A renewal whose answer was lost may have carried
 * the timer over the gap; then nobody can be certain.
 */
function judgeLapse(
  { settings }: CoreState,
  { server }: Belief,
  timer: ServerTimer,
  unresolved: number,
): Certainty | null {
  if (server === null) return null;
  const sinceEndMs = (timer.startTime - server.cancellationTime) * 1000;
  if (sinceEndMs < 0) return null;
  // The exchange may take its time to fire, and may round its stamps up by a second.
  const surely = sinceEndMs >= ROUNDING_MS + settings.cancellationDelayMs;
  return surely && unresolved === 0 ? 'certain' : 'possible';
}

function describeAlteration(
  { market, longestMs: askedMs }: Attempt,
  timer: ServerTimer,
  grantedMs: number,
): string | null {
  const said: string[] = [];
  if (grantedMs !== askedMs) said.push(`a timer of ${grantedMs / 1000} s instead of ${askedMs / 1000} s`);
  const asked = new Set<string>(market.settings.types ?? ['spot', 'margin', 'futures']);
  const given = new Set<string>(timer.types ?? ['spot', 'margin', 'futures']);
  if (asked.size !== given.size || [...asked].some((type) => !given.has(type))) {
    said.push(`order types ${[...given].join(', ') || 'none'} instead of ${[...asked].join(', ')}`);
  }
  return said.length === 0 ? null : `the exchange answered with ${said.join(' and ')}`;
}

/** A newer request of its market was confirmed: what this one is answered says nothing about now. */
export function isOvertaken({ belief }: MarketState, attempt: Write | undefined): boolean {
  return (
    attempt !== undefined && belief.writes.some(({ id, status }) => status === 'confirmed' && id > attempt.id)
  );
}

/** Forgets settled requests that can no longer decide about anything, and folds the rest. */
export function tidy(state: CoreState, market: MarketState): void {
  const { belief } = market;
  const awaited = market.onTheirWay;
  const confirmed = confirmedOf(belief);
  belief.writes = belief.writes.filter((write) => {
    if (awaited.includes(write)) return true;
    if (isReplaced(state, confirmed, write)) return false;
    // Without it, an awaited request that it replaces would count again.
    const replaces = confirmed.includes(write) && awaited.some((other) => isReplaced(state, [write], other));
    return replaces || mayDecide(state, confirmed, write);
  });
  fold(state, market);
}

/** Can a settled request still decide about anything? */
function mayDecide(state: CoreState, confirmed: readonly Write[], write: Write): boolean {
  // A delete or a trip can as long as there is a timer that it may have ended.
  return (
    latestFiring(state, write) > state.now.monoMs || confirmed.some((other) => mayFollow(state, write, other))
  );
}

/**
 * When a timer runs out, at the earliest, that a request of unknown outcome may have armed behind the last confirmed one;
 * awake clock.
 */
export function mayRunOutAwakeMs({ belief }: MarketState): number {
  const confirmed = confirmedOf(belief);
  const fromMs = Math.max(...confirmed.map(({ at }) => at.awakeMs));
  const strays = belief.writes.filter(
    ({ id, purpose, status, left }) => id !== 0 && purpose !== 'delete' && status === 'unknown' && left,
  );
  return Math.min(...strays.map(({ at, shortestMs }) => Math.max(at.awakeMs, fromMs) + leastMs(shortestMs)));
}

/** May such a timer have run out by now? */
export function mayHaveRunOut(state: CoreState, market: MarketState): boolean {
  return mayRunOutAwakeMs(market) <= state.awakeMs;
}

/** Until when the timer lasts if every request was carried out when it was written, on the awake clock. */
export function lastsUntilAwakeMs(state: CoreState, { belief }: MarketState): number {
  const confirmed = confirmedOf(belief);
  let untilMs = Number.NEGATIVE_INFINITY;
  for (const write of belief.writes) {
    if (write.purpose === 'delete' || isReplaced(state, confirmed, write)) continue;
    untilMs = Math.max(untilMs, write.at.awakeMs + write.longestMs);
  }
  return untilMs;
}

/**
 * Strays are requests of unknown outcome that may still be carried out behind a delete or a trip that is written now, and
 * undo it. Until when there are any, monotonic milliseconds; 0: there are none, because the next nonce of their key fences
 * them. A trip behind a trip undoes nothing.
 */
export function straysUntilMs(state: CoreState, { belief }: MarketState, before: 'delete' | 'trip'): number {
  let untilMs = 0;
  for (const write of belief.writes) {
    const isFree = areFree(state, write.key, state.key.changes);
    const undoes = write.purpose === 'renew' || (write.purpose === 'trip' && before === 'delete');
    if (isFree && undoes && write.status === 'unknown') untilMs = Math.max(untilMs, write.untilMs);
  }
  return untilMs;
}
