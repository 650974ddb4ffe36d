import type { EventLog } from './event-log.ts';
import type { Holdings } from './holdings.ts';
import type { OrderNumbers } from './order-numbers.ts';
import type { RestingOrders } from './resting-orders.ts';
import type { TimerTable } from './timer-table.ts';

/**
 * `documented`: the API document to the letter. `live`: as the live exchange was observed to answer: `[]` on a
 * delete, `types: null` for all types, whole-number timeouts accepted, and HTML pages where its gateway answers.
 */
export const PROFILES = ['documented', 'live'] as const;
export type Profile = (typeof PROFILES)[number];

/** How the exchange makes whole seconds of its clock for `startTime`. */
export type Rounding = 'floor' | 'round' | 'ceil';

/** What operations read and change. */
export interface ExchangeState {
  readonly profile: Profile;
  readonly startTimeRounding: Rounding;
  /** How long after its cancellationTime a timer fires, milliseconds. */
  readonly cancellationDelayMs: number;
  readonly hasMarket: (name: string) => boolean;
  /** Those that the listing of markets names; there may be more. */
  readonly listedMarkets: readonly string[];
  readonly timers: TimerTable;
  readonly orders: RestingOrders;
  readonly numbers: OrderNumbers;
  readonly holdings: Holdings;
  readonly log: EventLog;
}

/** One request that passed every check but those of its operation. */
export interface Call extends CallRules {
  /** Empty for public operations. */
  readonly account: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The exchange's clock, Unix milliseconds. */
  readonly nowMs: number;
  readonly state: ExchangeState;
}

/** How a request is carried out. */
export interface CallRules {
  /** False: answer as if the request were carried out, and change nothing. */
  readonly apply: boolean;
  /** Timers are armed for this many seconds; null: as asked for. */
  readonly grantSeconds: number | null;
}

/** Fires the timers that are due: each cancels the resting orders of its market and types, then is gone. */
export function fireDueTimers(state: ExchangeState, nowMs: number): void {
  for (const timer of state.timers.takeDue(nowMs)) {
    const { account, market, cancellationTime, types } = timer;
    const cancelled = state.orders.cancel(account, market, types);
    const cancelledOrders = cancelled.length;
    state.log.append(
      { kind: 'timer-fired', account, market, cancellationTime, types, cancelledOrders },
      nowMs,
    );
    for (const { id, type } of cancelled) {
      state.log.append(
        { kind: 'order-cancelled', account, orderId: id, market, type, by: 'kill-switch' },
        nowMs,
      );
    }
  }
}
