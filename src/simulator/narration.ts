import type { ExchangeEvent } from './event-log.ts';

const DAY_SECONDS = 86_400;

/** The time of day of a moment in Unix milliseconds, in UTC. */
function timeOfDay(atMs: number): string {
  const second = Math.floor(atMs / 1000) % DAY_SECONDS;
  const parts = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60];
  return `${parts.map((part) => String(part).padStart(2, '0')).join(':')}Z`;
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
