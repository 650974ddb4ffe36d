import type { Cancel } from '../ports.ts';
import { timeOfDay } from '../util/text.ts';
import type { Refusal } from './answer.ts';
import type { DepositAddress, KillSwitchTimer, MarketOrder, RestingOrder, Withdrawal } from './holdings.ts';

type Order = Pick<RestingOrder, 'account' | 'market' | 'type' | 'side' | 'amount' | 'price'> & {
  readonly orderId: number;
};
type Timer = Omit<KillSwitchTimer, 'dueMs'>;

/** Null where no operation has the path, or the request names no market. */
export interface Target {
  readonly operation: string | null;
  readonly market: string | null;
}

/** What events tell beside their kind. Times in Unix seconds where the API has them; amounts are decimal strings. */
interface Bodies {
  'order-placed': Order;
  'order-cancelled': Omit<Order, 'side' | 'amount' | 'price'> & { readonly by: 'kill-switch' | 'request' };
  'timer-armed': Timer & { readonly timeoutSeconds: number };
  'timer-updated': Bodies['timer-armed'];
  /** `cancellationTime`: when the removed timer would have fired. */
  'timer-deleted': Omit<Timer, 'startTime' | 'types'>;
  /** A delete found no timer. */
  'timer-delete-idle': Pick<Timer, 'account' | 'market'>;
  'timer-fired': Omit<Timer, 'startTime'> & { readonly cancelledOrders: number };
  'request-refused': Target & Pick<Refusal, 'status' | 'code'> & { readonly why: string };
  /** A market order, or a limit order whose price was met. The fee is in the quote currency. */
  'order-filled': Pick<MarketOrder, 'account' | 'market' | 'orderId' | 'side' | 'price'> &
    Pick<MarketOrder, 'dealStock' | 'dealMoney' | 'dealFee'>;
  'withdrawal-created': Omit<Withdrawal, 'address' | 'provider' | 'atMs'>;
  'address-created': Omit<DepositAddress, 'memo'>;
  'balance-set': { readonly account: string; readonly currency: string; readonly amount: string };
  'price-set': { readonly market: string; readonly price: string };
  'time-advanced': { readonly ms: number };
  reset: { readonly snapshot: number };
  'fault-added': { readonly faultId: number; readonly fault: string };
  'fault-applied': Target & Bodies['fault-added'];
  'faults-cleared': { readonly faults: number };
}

/** Something that happened at the simulated exchange. */
export type EventBody = { [Kind in keyof Bodies]: { readonly kind: Kind } & Bodies[Kind] }[keyof Bodies];

/** `seq` counts from 1 without gaps; `atMs` is the exchange's clock in Unix milliseconds. */
export type ExchangeEvent = EventBody & Numbered;

export interface Numbered {
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
      const oldest = last % capacity;
      const kept = [...ring.slice(oldest), ...ring.slice(0, oldest)];
      return kept.slice(Math.max(0, kept.length - (last - seq)));
    },
    lastSeq: () => last,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Names that a client sent could carry control sequences for the terminal that shows them. */
const printable = (text: string) => text.replace(/[^ -~]/g, '?');

/** What a reader wants to see of an event, in plain words; routine such as renewals is left out. */
const TOLD: { readonly [Kind in keyof Bodies]?: (event: Bodies[Kind]) => string | null } = {
  'timer-armed'({ market, timeoutSeconds, types, cancellationTime }) {
    const scope = types === null ? 'all orders' : `${types.join(' and ')} orders`;
    const due = `${timeOfDay(cancellationTime * 1000)}Z`;
    return `${market}: timer armed for ${timeoutSeconds} s; unless it is renewed it cancels ${scope} at ${due}`;
  },
  'timer-deleted': ({ market }) => `${market}: timer deleted; its orders stay`,
  'timer-delete-idle': ({ market }) => `${market}: asked to delete a timer that does not exist`,
  'timer-fired': ({ market, cancelledOrders }) =>
    `${market}: THE TIMER FIRED; orders cancelled: ${cancelledOrders}`,
  'order-cancelled': ({ by, market, type, orderId }) =>
    by === 'request' ? null : `${market}: ${type} order ${orderId} cancelled by the kill-switch`,
  'request-refused'({ operation, market, status, code, why }) {
    const what = [operation ?? 'unknown path', market].filter((part) => part !== null).join(' ');
    return `${printable(what)}: refused with ${status}, code ${code}: ${printable(why)}`;
  },
  'order-filled'({ market, side, orderId, dealStock, dealMoney, dealFee }) {
    const done = side === 'buy' ? 'bought' : 'sold';
    return `${market}: order ${orderId} ${done} ${dealStock} for ${dealMoney}, fee ${dealFee}`;
  },
  'withdrawal-created': ({ ticker, amount, fee, uniqueId }) =>
    `${ticker}: withdrawal ${printable(uniqueId)} of ${amount}, fee ${fee}`,
  'address-created': ({ ticker, network }) => `${ticker}: new deposit address on ${network}`,
  'fault-added': ({ faultId, fault }) => `fault ${faultId} added: ${fault}`,
  'faults-cleared': ({ faults }) => `faults cleared: ${faults}`,
  'time-advanced': ({ ms }) => `time advanced by ${ms / 1000} s`,
  reset: ({ snapshot }) => (snapshot === 0 ? 'everything reset' : `everything reset to snapshot ${snapshot}`),
};

/** Makes a listener for the event log that writes one line per interesting event; repeats in a row are left out. */
export function createNarrator(out: (line: string) => void): (event: ExchangeEvent) => void {
  let last = '';
  return (event) => {
    const tell = TOLD[event.kind] as ((body: EventBody) => string | null) | undefined;
    const sentence = tell?.(event) ?? null;
    if (sentence === null || sentence === last) return;
    last = sentence;
    out(`${timeOfDay(event.atMs)}Z ${sentence}`);
  };
}
