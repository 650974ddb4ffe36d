import type { Cancel } from '../ports.ts';
import { timeOfDay } from '../util/text.ts';

interface OfMarket {
  readonly account: string;
  readonly market: string;
}

/** A resting order, or one that was. Amounts and prices are decimal strings. */
interface OfOrder extends OfMarket {
  readonly orderId: number;
  /** Of the kill-switch: `spot`, `margin` or `futures`. */
  readonly type: string;
}

/** Something that happened at the simulated exchange. Times in Unix seconds where the API has them. */
export type EventBody =
  | ({
      readonly kind: 'order-placed';
      readonly side: string;
      readonly amount: string;
      readonly price: string;
    } & OfOrder)
  | ({ readonly kind: 'order-cancelled'; readonly by: 'kill-switch' | 'request' } & OfOrder)
  | ({
      readonly kind: 'timer-armed' | 'timer-updated';
      readonly timeoutSeconds: number;
      readonly startTime: number;
      readonly cancellationTime: number;
      /** Null where the timer covers all order types. */
      readonly types: readonly string[] | null;
    } & OfMarket)
  /** `cancellationTime`: when the removed timer would have fired. */
  | ({ readonly kind: 'timer-deleted'; readonly cancellationTime: number } & OfMarket)
  /** A delete found no timer. */
  | ({ readonly kind: 'timer-delete-idle' } & OfMarket)
  | ({
      readonly kind: 'timer-fired';
      readonly cancellationTime: number;
      readonly types: readonly string[] | null;
      readonly cancelledOrders: number;
    } & OfMarket)
  | {
      readonly kind: 'request-refused';
      /** Null where no operation was found for the path. */
      readonly operation: string | null;
      readonly market: string | null;
      readonly status: number;
      readonly code: number;
      readonly why: string;
    }
  /** A market order, or a limit order whose price was met. The fee is in the quote currency. */
  | ({
      readonly kind: 'order-filled';
      readonly orderId: number;
      readonly side: 'buy' | 'sell';
      readonly dealStock: string;
      readonly dealMoney: string;
      readonly dealFee: string;
      readonly price: string;
    } & OfMarket)
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
  /** Somebody set it at a control endpoint. */
  | {
      readonly kind: 'balance-set';
      readonly account: string;
      readonly currency: string;
      readonly amount: string;
    }
  | { readonly kind: 'price-set'; readonly market: string; readonly price: string }
  | { readonly kind: 'time-advanced'; readonly ms: number }
  /** Everything is as it was at the start, or at a snapshot. */
  | { readonly kind: 'reset'; readonly snapshot: number }
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
export type ExchangeEvent = EventBody & Numbered;

interface Numbered {
  readonly seq: number;
  readonly atMs: number;
}

/** Entries in the order in which they came. */
export interface Journal<Body, Entry> {
  append(body: Body, atMs: number): void;
  /** Entries whose `seq` is greater, oldest first; the oldest are gone where more than the capacity came. */
  since(seq: number): readonly Entry[];
  /** The `seq` of the newest entry; 0 where there is none yet. */
  lastSeq(): number;
  /** Calls `listener` with every later entry, synchronously. */
  subscribe(listener: (entry: Entry) => void): Cancel;
}

export type EventLog = Journal<EventBody, ExchangeEvent>;

/** An append-only log that keeps the newest `capacity` entries. */
export function createJournal<Body extends object>(capacity: number): Journal<Body, Body & Numbered> {
  const ring: (Body & Numbered)[] = [];
  const listeners = new Set<(entry: Body & Numbered) => void>();
  let last = 0;
  return {
    append(body, atMs) {
      const entry = { seq: last + 1, atMs, ...body };
      ring[last % capacity] = entry;
      last += 1;
      for (const listener of listeners) listener(entry);
    },
    since(seq) {
      const found: (Body & Numbered)[] = [];
      for (let next = Math.max(seq, last - capacity, 0); next < last; next += 1) {
        const entry = ring[next % capacity];
        if (entry !== undefined) found.push(entry);
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

function ordersOf(types: readonly string[] | null): string {
  return types === null ? 'all orders' : `${types.join(' and ')} orders`;
}

/** Names that a client sent could carry control sequences for the terminal that shows them. */
function printable(text: string): string {
  return text.replace(/[^ -~]/g, '?');
}

/** What a reader wants to see of an event, in plain words; null for routine such as renewals. */
function describeEvent(event: ExchangeEvent): string | null {
  switch (event.kind) {
    case 'timer-armed': {
      const { market, timeoutSeconds, types, cancellationTime } = event;
      const scope = ordersOf(types);
      const due = timeOfDay(cancellationTime * 1000);
      return `${market}: timer armed for ${timeoutSeconds} s; unless it is renewed it cancels ${scope} at ${due}`;
    }
    case 'timer-deleted':
      return `${event.market}: timer deleted; its orders stay`;
    case 'timer-delete-idle':
      return `${event.market}: asked to delete a timer that does not exist`;
    case 'timer-fired':
      return `${event.market}: THE TIMER FIRED; orders cancelled: ${event.cancelledOrders}`;
    case 'order-cancelled':
      return event.by === 'request'
        ? null
        : `${event.market}: ${event.type} order ${event.orderId} cancelled by the kill-switch`;
    case 'request-refused': {
      const { operation, market, status, code, why } = event;
      const what = [operation ?? 'unknown path', market].filter((part) => part !== null).join(' ');
      return `${printable(what)}: refused with ${status}, code ${code}: ${printable(why)}`;
    }
    case 'order-filled': {
      const { market, side, orderId, dealStock, dealMoney, dealFee } = event;
      const done = side === 'buy' ? 'bought' : 'sold';
      return `${market}: market order ${orderId} ${done} ${dealStock} for ${dealMoney}, fee ${dealFee}`;
    }
    case 'withdrawal-created': {
      const { ticker, amount, fee, uniqueId } = event;
      return `${ticker}: withdrawal ${printable(uniqueId)} of ${amount}, fee ${fee}`;
    }
    case 'address-created':
      return `${event.ticker}: new deposit address on ${event.network}`;
    case 'fault-added':
      return `fault ${event.faultId} added: ${event.fault}`;
    case 'faults-cleared':
      return `faults cleared: ${event.faults}`;
    case 'time-advanced':
      return `time advanced by ${event.ms / 1000} s`;
    case 'reset':
      return event.snapshot === 0 ? 'everything reset' : `everything reset to snapshot ${event.snapshot}`;
    case 'order-placed':
    case 'timer-updated':
    case 'balance-set':
    case 'price-set':
    case 'fault-applied':
      return null;
  }
}

/** Makes a listener for the event log that writes one line per interesting event; repeats in a row are left out. */
export function createNarrator(out: (line: string) => void): (event: ExchangeEvent) => void {
  let last = '';
  return (event) => {
    const sentence = describeEvent(event);
    if (sentence === null || sentence === last) return;
    last = sentence;
    out(`${timeOfDay(event.atMs)} ${sentence}`);
  };
}
