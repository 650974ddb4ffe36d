import type { Cancel, Clock, Granted } from '../ports.ts';
import { createLessor, type Lessor } from './lessor.ts';
import type { Limit } from './operations.ts';

/** The permits of one documented limit. */
export interface Limiter {
  /**
   * Asks for `permits` requests at once. Calls `granted` once: synchronously where they are in stock, else in the order
   * of asking, at the latest `withinMs` of monotonic time from now as `overdue`. More than the whole budget at once is
   * only ever granted as overdue. The returned function withdraws the request.
   */
  acquire(permits: number, withinMs: number, granted: (how: Granted) => void): Cancel;
  /** Permits of the current window that nobody has spent or waits for; negative after overdue grants. */
  spare(): number;
  /** Another budget from now on. What was spent within the last window counts on. */
  readonly resize: (budget: Limit) => void;
  /** Drops what is waiting. Nothing is granted afterwards. */
  close(): void;
}

interface Waiter {
  readonly permits: number;
  readonly granted: (how: Granted) => void;
  cancelOverdue: Cancel;
}

/** Permits that were spent at about the same time. Monotonic milliseconds. */
interface Bundle {
  permits: number;
  readonly untilMs: number;
  readonly backAtMs: number;
}

/** One job of bottleneck costs about as much as ten requests and waits 5 ms: it takes many permits at a time. */
const MAX_LEASE = 500;
/** Spent permits are given back in bundles, a hundred per window. */
const BUNDLES = 100;
/** Overdue grants in a row after which bottleneck counts as stalled, where permits should have been there. */
const STALLED_AFTER = 3;

/** Permits always add up: reservoir of the lessor + lease on its way + `stock` + `spent` = budget. */
interface LimiterState {
  readonly clock: Clock;
  budget: Limit;
  lessor: Lessor;
  /** Leased and not spent; negative where overdue grants were made on credit, until a lease pays for them. */
  stock: number;
  /** Permits of the lease that is on its way; 0 for none. */
  leasing: number;
  overdueInARow: number;
  closed: boolean;
  cancelWake: Cancel;
  readonly waiters: Waiter[];
  /** Oldest first. */
  readonly bundles: Bundle[];
  spent: number;
}

function spend(state: LimiterState, permits: number, nowMs: number): void {
  state.stock -= permits;
  state.spent += permits;
  const bundle = state.bundles.at(-1);
  if (bundle !== undefined && nowMs < bundle.untilMs) {
    bundle.permits += permits;
    return;
  }
  const untilMs = nowMs + state.budget.windowMs / BUNDLES;
  state.bundles.push({ permits, untilMs, backAtMs: untilMs + state.budget.windowMs });
}

/** Gives back what was spent more than a window ago. */
function collect(state: LimiterState, nowMs: number): void {
  const { bundles } = state;
  let permits = 0;
  while (bundles[0] !== undefined && bundles[0].backAtMs <= nowMs) permits += bundles.shift()?.permits ?? 0;
  if (permits === 0) return;
  state.spent -= permits;
  state.lessor.giveBack(permits);
}

/** Permits that the lessor has, a lease on its way included; more than that it can hand out only later. */
function available({ budget, stock, spent }: LimiterState): number {
  return budget.requests - stock - spent;
}

function grantInTurn(state: LimiterState): void {
  const { waiters } = state;
  for (let head = waiters[0]; head !== undefined && head.permits <= state.stock; head = waiters[0]) {
    waiters.shift();
    head.cancelOverdue();
    spend(state, head.permits, state.clock.now().monoMs);
    head.granted('in-turn');
  }
}

function requestLease(state: LimiterState): void {
  const { waiters, stock, budget } = state;
  const head = waiters[0];
  if (state.leasing > 0 || state.closed) return;
  const usual = Math.max(1, Math.min(MAX_LEASE, Math.floor(budget.requests / 4)));
  // A lease takes several turns of the loop, each as long as a slice of a page: the next one is there before it is needed.
  if (head === undefined && stock * 2 >= usual) return;
  const needed = head === undefined ? 0 : Math.min(head.permits - stock, budget.requests);
  const wanted = waiters.reduce((sum, waiter) => sum + waiter.permits, 0) - stock;
  const weight = Math.max(needed, Math.min(Math.max(wanted, usual), available(state)));
  if (weight <= 0) return;
  state.leasing = weight;
  state.lessor.lease(weight, () => {
    state.leasing = 0;
    state.overdueInARow = 0;
    state.stock += weight;
    serve(state);
  });
}

/** Grants what can be granted and sees to it that the rest will be. */
function serve(state: LimiterState): void {
  grantInTurn(state);
  requestLease(state);
  state.cancelWake();
  state.cancelWake = () => undefined;
  const oldest = state.bundles[0];
  // While nobody waits there is no timer: the next request collects what has come back.
  if (state.waiters.length === 0 || oldest === undefined || state.closed) return;
  state.cancelWake = state.clock.after(oldest.backAtMs - state.clock.now().monoMs, () => {
    collect(state, state.clock.now().monoMs);
    serve(state);
  });
}

function withdraw(state: LimiterState, waiter: Waiter): boolean {
  const place = state.waiters.indexOf(waiter);
  if (place === -1) return false;
  state.waiters.splice(place, 1);
  waiter.cancelOverdue();
  return true;
}

/** Starts again with what the old lessor had left. Bottleneck cannot withdraw a lease, nor be told that time went back. */
function replaceLessor(state: LimiterState): void {
  state.lessor.stop();
  state.stock = Math.max(state.stock, 0);
  state.lessor = createLessor(available(state));
  state.leasing = 0;
  state.overdueInARow = 0;
}

function grantOverdue(state: LimiterState, waiter: Waiter): void {
  if (!withdraw(state, waiter)) return;
  spend(state, waiter.permits, state.clock.now().monoMs);
  state.overdueInARow += 1;
  const exhausted = state.leasing > available(state);
  if (state.overdueInARow >= STALLED_AFTER && !exhausted) replaceLessor(state);
  waiter.granted('overdue');
  serve(state);
}

/**
 * One limiter per documented limit. Permits are leased from bottleneck and spent here; each goes back when it has been
 * spent for a whole window, so that no sliding window sees more than the budget.
 *
 * Bottleneck waits on the wall clock and after a step back starts nothing until the old time comes round. Overdue
 * grants carry the requests over that, and after three in a row a new instance takes over.
 */
export function createLimiter(clock: Clock, budget: Limit): Limiter {
  const state: LimiterState = {
    clock,
    budget,
    lessor: createLessor(budget.requests),
    stock: 0,
    leasing: 0,
    overdueInARow: 0,
    closed: false,
    cancelWake: () => undefined,
    waiters: [],
    bundles: [],
    spent: 0,
  };

  return {
    acquire(permits, withinMs, granted) {
      if (state.closed) return () => undefined;
      const nowMs = clock.now().monoMs;
      collect(state, nowMs);
      if (state.waiters.length === 0 && permits <= state.stock) {
        spend(state, permits, nowMs);
        requestLease(state);
        granted('in-turn');
        return () => undefined;
      }
      const waiter: Waiter = { permits, granted, cancelOverdue: () => undefined };
      waiter.cancelOverdue = clock.after(withinMs, () => grantOverdue(state, waiter));
      state.waiters.push(waiter);
      serve(state);
      return () => {
        if (!withdraw(state, waiter)) return;
        // The lease on its way may have been meant for it, and what is left may do for the others.
        if (state.leasing > available(state)) replaceLessor(state);
        serve(state);
      };
    },
    spare() {
      collect(state, clock.now().monoMs);
      return state.waiters.reduce((left, { permits }) => left - permits, state.budget.requests - state.spent);
    },
    resize(next) {
      if (next.requests === state.budget.requests && next.windowMs === state.budget.windowMs) return;
      collect(state, clock.now().monoMs);
      state.budget = next;
      state.stock = Math.min(state.stock, Math.max(0, next.requests - state.spent));
      replaceLessor(state);
      serve(state);
    },
    close() {
      state.closed = true;
      for (const waiter of state.waiters.splice(0)) waiter.cancelOverdue();
      state.cancelWake();
      state.lessor.stop();
    },
  };
}
