import type { Cancel } from '../ports.ts';

/** Something that happened at the simulated exchange. Times in Unix seconds where the API has them. */
export type EventBody =
  | {
      readonly kind: 'order-placed';
      readonly account: string;
      readonly orderId: number;
      readonly market: string;
      readonly type: string;
      readonly side: string;
      readonly amount: string;
      readonly price: string;
    }
  | {
      readonly kind: 'order-cancelled';
      readonly account: string;
      readonly orderId: number;
      readonly market: string;
      readonly type: string;
      readonly by: 'kill-switch';
    }
  | {
      readonly kind: 'timer-armed' | 'timer-updated';
      readonly account: string;
      readonly market: string;
      readonly timeoutSeconds: number;
      readonly startTime: number;
      readonly cancellationTime: number;
      /** Null where the timer covers all order types. */
      readonly types: readonly string[] | null;
    }
  | {
      readonly kind: 'timer-deleted';
      readonly account: string;
      readonly market: string;
      /** When the removed timer would have fired. */
      readonly cancellationTime: number;
    }
  /** A delete found no timer. */
  | { readonly kind: 'timer-delete-idle'; readonly account: string; readonly market: string }
  | {
      readonly kind: 'timer-fired';
      readonly account: string;
      readonly market: string;
      readonly cancellationTime: number;
      readonly types: readonly string[] | null;
      readonly cancelledOrders: number;
    }
  | {
      readonly kind: 'request-refused';
      /** Null where no operation was found for the path. */
      readonly operation: string | null;
      readonly market: string | null;
      readonly status: number;
      readonly code: number;
      readonly why: string;
    }
  /** A market order was filled. Amounts and price are decimal strings; the fee is in the quote currency. */
  | {
      readonly kind: 'order-filled';
      readonly account: string;
      readonly orderId: number;
      readonly market: string;
      readonly side: 'buy' | 'sell';
      readonly dealStock: string;
      readonly dealMoney: string;
      readonly dealFee: string;
      readonly price: string;
    }
  | {
      readonly kind: 'withdrawal-created';
      readonly account: string;
      readonly uniqueId: string;
      readonly ticker: string;
      readonly amount: string;
      readonly fee: string;
      /** Null for fiat. */
      readonly network: string | null;
    }
  | {
      readonly kind: 'address-created';
      readonly account: string;
      readonly ticker: string;
      readonly network: string;
      /** Null where the currency has one kind of address only. */
      readonly type: string | null;
      readonly address: string;
    }
  /** Somebody on this host set it. */
  | {
      readonly kind: 'balance-set';
      readonly account: string;
      readonly currency: string;
      readonly amount: string;
    }
  | { readonly kind: 'price-set'; readonly market: string; readonly price: string }
  | { readonly kind: 'fault-added'; readonly faultId: number; readonly fault: string }
  | {
      readonly kind: 'fault-applied';
      readonly faultId: number;
      readonly fault: string;
      readonly operation: string | null;
      readonly market: string | null;
    }
  | { readonly kind: 'faults-cleared'; readonly faults: number };

/** `seq` counts from 1 without gaps; `atMs` is the exchange's clock in Unix milliseconds. */
export type ExchangeEvent = EventBody & { readonly seq: number; readonly atMs: number };

export interface EventLog {
  append(event: EventBody, atMs: number): void;
  /** Events whose `seq` is greater, oldest first; the oldest ones are gone where more than the capacity happened. */
  since(seq: number): readonly ExchangeEvent[];
  /** The `seq` of the newest event; 0 where nothing happened yet. */
  lastSeq(): number;
  /** Calls `listener` with every later event, synchronously. */
  subscribe(listener: (event: ExchangeEvent) => void): Cancel;
}

/** An append-only log that keeps the newest `capacity` events. */
export function createEventLog(capacity: number): EventLog {
  const ring: ExchangeEvent[] = [];
  const listeners = new Set<(event: ExchangeEvent) => void>();
  let last = 0;
  return {
    append(body, atMs) {
      const event = { seq: last + 1, atMs, ...body };
      ring[last % capacity] = event;
      last += 1;
      for (const listener of listeners) listener(event);
    },
    since(seq) {
      const found: ExchangeEvent[] = [];
      for (let next = Math.max(seq, last - capacity, 0); next < last; next += 1) {
        const event = ring[next % capacity];
        if (event !== undefined) found.push(event);
      }
      return found;
    },
    lastSeq: () => last,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
