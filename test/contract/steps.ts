import { expect } from 'vitest';
import type { OperationName } from '../../src/exchange/operations.ts';
import type { ExchangeOptions } from '../../src/simulator/simulated-exchange.ts';
import type { ClientSide, Fields, RawSide } from './sides.ts';

export type AnySide = ClientSide | RawSide;

/** One test, which is run on both sides. */
export interface Case {
  /** A sentence; no two cases have the same. */
  readonly title: string;
  /** Ids of the rows that it checks. */
  readonly rows: readonly string[];
  readonly options?: ExchangeOptions;
  readonly check: (side: AnySide) => Promise<void>;
}

/** A request of each operation with all that it can be given, and which the exchange carries out. */
export const SAMPLES: Readonly<Record<OperationName, Fields>> = {
  createStockMarketOrder: {
    market: 'BTC_USDT',
    side: 'buy',
    amount: '60',
    client_order_id: 'bot-1.7_a',
    stp: 'cancel_new',
  },
  orderHistory: { market: 'BTC_USDT', limit: 10 },
  withdrawPay: { ticker: 'USDT', amount: '10', address: 'TXyz', unique_id: 'w-1', network: 'TRC20' },
  syncKillSwitch: { market: 'BTC_USDT', timeout: '60', types: ['spot', 'margin'] },
  myCodes: { limit: 2, offset: 1 },
  miningHashrate: { account: 'rig', from: 1_700_000_000, to: 1_700_007_200, interval: '1h' },
  createNewAddress: { ticker: 'XRP', network: 'XRP' },
  miningPool: {},
  ping: {},
};

/** The value of a request that is carried out; fails the test where it is not. */
export async function done(side: AnySide, operation: OperationName, fields: Fields): Promise<unknown> {
  const outcome = await side.ask(operation, fields);
  if (outcome.kind === 'done') return outcome.value;
  return expect.fail(`${operation} ${JSON.stringify(fields)}: ${JSON.stringify(outcome)}`);
}

/** The sample of the operation with other fields. */
export const but = (operation: OperationName, fields: Fields): Fields => ({
  ...SAMPLES[operation],
  ...fields,
});

/** Without one field. */
export function without(operation: OperationName, field: string): Fields {
  return Object.fromEntries(Object.entries(SAMPLES[operation]).filter(([name]) => name !== field));
}

export interface Refusal {
  readonly status: number;
  readonly code: number;
  readonly field: string;
  readonly message?: RegExp;
  /** True where only the exchange can know. Else the client does not send it. */
  readonly sent?: boolean;
}

/** A request without a field that must be there. */
export function refusesWithout(side: AnySide, operation: OperationName, field: string): Promise<void> {
  const expected = { status: 422, code: 30, field, message: /required/ };
  return refuses(side, operation, without(operation, field), expected);
}

/** The exchange refuses it so, and changes no balance; the client does not even send it where it can know. */
export async function refuses(
  side: AnySide,
  operation: OperationName,
  fields: Fields,
  { status, code, field, message = /./, sent = false }: Refusal,
): Promise<void> {
  const before = side.exchange.books();
  const outcome = await side.ask(operation, fields);
  if (side.kind === 'client' && !sent) {
    expect(outcome).toEqual({ kind: 'not-sent', field });
    return;
  }
  expect(outcome).toMatchObject({ kind: 'refused', status, code });
  const messages = outcome.kind === 'refused' ? (outcome.errors[field] ?? []) : [];
  expect(messages.join('\n')).toMatch(message);
  expect(side.exchange.books()).toEqual(before);
}
