import { ORDER_TYPES } from '../core/events.ts';
import { done, flaw, flawsAmong, marketFlaw, NO_MARKET, type Profile, refuseOrder } from './answer.ts';
import { isOrderType, type KillSwitchTimer } from './holdings.ts';
import { cancel } from './orders.ts';
import { type Call, type ExchangeState, restingOf } from './state.ts';

const MIN_TIMEOUT_SECONDS = 5;
const MAX_TIMEOUT_SECONDS = 600;

/** `POST /api/v4/order/kill-switch`: creates, updates or deletes the timer of a market. */
export function syncKillSwitch(call: Call) {
  const { body, grantSeconds, profile } = call;
  const { market, timeout, types = null } = profile === 'live' ? asDocumented(body) : body;
  const flaws = flawsAmong([
    marketFlaw(market) ?? (call.hasMarket(String(market)) ? null : NO_MARKET),
    flawIf('timeout', timeoutProblem(timeout)),
    flawIf('types', typesProblem(types)),
  ]);
  if (flaws.length > 0) return refuseOrder('form', flaws, profile);
  if (timeout === null) return deleteTimer(call, String(market));
  const asked = Array.isArray(types) ? types.filter(isOrderType) : null;
  return armTimer(call, String(market), asked, grantSeconds ?? Number(timeout));
}

function armTimer(call: Call, market: string, types: KillSwitchTimer['types'], timeoutSeconds: number) {
  const { account, nowMs, data, log } = call;
  const startTime = Math[call.startTimeRounding](nowMs / 1000);
  const cancellationTime = startTime + timeoutSeconds;
  const dueMs = cancellationTime * 1000 + call.cancellationDelayMs;
  const timer = { account, market, startTime, cancellationTime, types, dueMs };
  const kind = data.timers.has(nameOf(timer)) ? 'timer-updated' : 'timer-armed';
  data.timers.set(nameOf(timer), timer);
  data.soonestMs = Math.min(data.soonestMs, dueMs);
  log.append({ kind, account, market, timeoutSeconds, startTime, cancellationTime, types }, nowMs);
  return done(timerReply(timer, call.profile));
}

function deleteTimer(call: Call, market: string) {
  const { account, nowMs, profile, data, log } = call;
  const name = nameOf({ account, market });
  const timer = data.timers.get(name);
  data.timers.delete(name);
  if (timer === undefined) log.append({ kind: 'timer-delete-idle', account, market }, nowMs);
  else
    log.append({ kind: 'timer-deleted', account, market, cancellationTime: timer.cancellationTime }, nowMs);
  if (profile === 'live') return done([]);
  const startTime = Math[call.startTimeRounding](nowMs / 1000);
  return done(timerReply(timer ?? { market, startTime, cancellationTime: startTime, types: null }, profile));
}

/**
 * Fires the timers that are due, earliest first: each cancels the resting orders of its market and types, then is gone.
 * A renewal leaves `soonestMs` alone, so that it costs nothing; the look at every timer is due when that moment comes.
 */
export function fireDueTimers(state: ExchangeState, nowMs: number): void {
  const { data, log } = state;
  if (nowMs < data.soonestMs) return;
  const due = [...data.timers.values()].filter(({ dueMs }) => dueMs <= nowMs);
  for (const timer of due) data.timers.delete(nameOf(timer));
  data.soonestMs = Number.POSITIVE_INFINITY;
  for (const { dueMs } of data.timers.values()) data.soonestMs = Math.min(data.soonestMs, dueMs);
  for (const timer of due.toSorted((one, other) => one.dueMs - other.dueMs)) {
    const { account, market, cancellationTime, types } = timer;
    const cancelled = restingOf(state, account, market).filter(({ type }) => types?.includes(type) ?? true);
    const cancelledOrders = cancelled.length;
    log.append({ kind: 'timer-fired', account, market, cancellationTime, types, cancelledOrders }, nowMs);
    for (const order of cancelled) cancel(state, order, 'kill-switch', nowMs);
  }
}

/** No account and no market has white space in it. */
function nameOf({ account, market }: Pick<KillSwitchTimer, 'account' | 'market'>): string {
  return `${account} ${market}`;
}

function timerReply(timer: Omit<KillSwitchTimer, 'account' | 'dueMs'>, profile: Profile): unknown {
  const { market, startTime, cancellationTime } = timer;
  const types = timer.types ?? (profile === 'live' ? null : ORDER_TYPES);
  return { market, startTime, cancellationTime, types };
}

function flawIf(field: string, problem: string | null) {
  return problem === null ? null : flaw(field, problem, { live: problem });
}

/**
 * What libraries for the live exchange send and the document does not have: a number as timeout, the text `null` to
 * delete a timer (ccxt), and an empty list where no types are named (the exchange's own library for PHP). Nobody has
 * shown what the live exchange makes of the last two; they are taken as they are meant.
 */
function asDocumented(body: Call['body']): Call['body'] {
  const { timeout, types } = body;
  return {
    ...body,
    ...(typeof timeout === 'number' && { timeout: String(timeout) }),
    ...(timeout === 'null' && { timeout: null }),
    ...(Array.isArray(types) && types.length === 0 && { types: null }),
  };
}

function timeoutProblem(timeout: unknown): string | null {
  if (timeout === undefined) return 'field is required.';
  if (timeout === null) return null;
  if (timeout === 'null') return 'must be a numeric string or null: "null" in quotes is a string.';
  if (typeof timeout !== 'string' || !/^-?\d+(\.\d+)?$/.test(timeout))
    return 'must be a numeric string or null.';
  const seconds = Number(timeout);
  if (seconds < MIN_TIMEOUT_SECONDS) return `should be at least ${MIN_TIMEOUT_SECONDS}.`;
  if (seconds > MAX_TIMEOUT_SECONDS) return `should be at most ${MAX_TIMEOUT_SECONDS}.`;
  // As text: a fraction that is small enough is lost in a number.
  return /\.0*[1-9]/.test(timeout) ? 'should be a whole number of seconds.' : null;
}

function typesProblem(types: unknown): string | null {
  if (types === null) return null;
  if (!Array.isArray(types)) return 'must be an array or null.';
  if (types.length === 0) return 'should have at least one item, or be null for all order types.';
  return types.every(isOrderType) ? null : `may contain only: ${ORDER_TYPES.join(', ')}.`;
}
