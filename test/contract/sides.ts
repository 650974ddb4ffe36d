import { expect } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { ApiError, ArgumentError, RefusedError } from '../../src/exchange/errors.ts';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { createTransport } from '../../src/exchange/transport.ts';
import type { WireContent, WireRequest } from '../../src/exchange/wire.ts';
import type { ExchangeOptions } from '../../src/simulator/state.ts';
import { openClient } from '../exchange/open.ts';
import { argumentsOf, type Fields, fieldsOf, SPELLINGS } from '../exchange/samples.ts';
import { type Sent, signed } from '../simulator/raw-client.ts';
import { createTrader, openServer } from '../simulator/trader.ts';

/** What came of a request, told alike for both sides. */
type Outcome =
  | { readonly kind: 'done'; readonly value: unknown }
  | {
      readonly kind: 'refused';
      readonly status: number | null;
      /** Null where the answer has none. */
      readonly code: number | null;
      readonly message: string;
      readonly errors: Readonly<Record<string, readonly string[]>>;
    }
  /** The client has not sent it: an argument, in the document's spelling, is not allowed. */
  | { readonly kind: 'not-sent'; readonly field: string };

export type RawSide = ReturnType<typeof openRawSide>;
export type AnySide = Awaited<ReturnType<typeof openClientSide>> | RawSide;

/** One test, which is run on both sides. */
export interface Case {
  /** A sentence; no two cases have the same. */
  readonly title: string;
  /** Ids of the rows that it checks. */
  readonly rows: readonly string[];
  readonly options?: ExchangeOptions;
  readonly check: (side: AnySide) => Promise<void>;
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof ArgumentError) {
    const { argument } = error;
    const field = Object.entries(SPELLINGS).find(([, spelling]) => spelling === argument)?.[0] ?? argument;
    return { kind: 'not-sent', field };
  }
  if (!(error instanceof ApiError)) throw error;
  const { status, message } = error;
  const { code, fields: errors } = error instanceof RefusedError ? error : { code: null, fields: {} };
  return { kind: 'refused', status, code, message, errors };
}

/** The client over real HTTP, until the test ends. */
export async function openClientSide(options: ExchangeOptions) {
  const { url, exchange } = await openServer({ exchange: options });
  const wire = createTransport({ clock: createSystemClock(), bases: [url] });
  const sent: (WireRequest & WireContent)[] = [];
  const send: typeof wire.send = (request, settled) => {
    const content = () => {
      const written = request.content();
      sent.push({ ...request, ...written });
      return written;
    };
    return wire.send({ ...request, content }, settled);
  };
  const client = openClient(url, {
    credentials: () => ({ key: 'demo-key', secret: 'demo-secret' }),
    accessToken: () => 'demo-token',
    transport: { ...wire, send },
  });
  /** Fields are written as the document writes them. */
  const ask = async (operation: OperationName, fields: Fields = {}): Promise<Outcome> => {
    const call = client[operation] as (request: unknown) => Promise<unknown>;
    try {
      return { kind: 'done', value: await call(argumentsOf(operation, fields)) };
    } catch (error) {
      return outcomeOf(error);
    }
  };
  return { kind: 'client' as const, exchange, client, sent, ask };
}

/** Raw requests to an exchange in this process. */
export function openRawSide(options: ExchangeOptions) {
  const { exchange, handle } = createTrader(options);
  const send = (sent: Sent) => handle(sent, Date.now());
  const ask = async (operation: OperationName, fields: Fields = {}): Promise<Outcome> => {
    const { status, value } = send(requestOf(operation, fields));
    if (status < 300) return { kind: 'done', value };
    return { kind: 'refused', status, code: null, message: '', errors: {}, ...(value as object) };
  };
  return { kind: 'raw' as const, exchange, send, ask };
}

/** A request as the document wants it. */
export function requestOf(operation: OperationName, fields: Fields = fieldsOf(operation)): Sent {
  const { method, path, authentication } = OPERATIONS[operation];
  if (authentication === 'none') return { method, path, headers: {}, body: '' };
  if (authentication === 'signed') return signed(fields, { path });
  const headers = { authorization: 'Bearer demo-token', 'content-type': 'application/json' };
  return { method, path, headers, body: JSON.stringify(fields) };
}

/** The sample of the operation with other fields; undefined leaves one out. */
export function but(operation: OperationName, fields: Fields): Fields {
  const all = Object.entries({ ...fieldsOf(operation), ...fields });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/** The value of a request that is carried out, of the sample where no fields are given; else fails the test. */
export async function done(side: AnySide, operation: OperationName, fields = fieldsOf(operation)) {
  const outcome = await side.ask(operation, fields);
  if (outcome.kind === 'done') return outcome.value;
  return expect.fail(`${operation} ${JSON.stringify(fields)}: ${JSON.stringify(outcome)}`);
}
