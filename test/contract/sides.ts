import { createSystemClock } from '../../src/clock.ts';
import { type Client, createClient } from '../../src/exchange/client.ts';
import { ApiError, ArgumentError, RefusedError } from '../../src/exchange/errors.ts';
import { OPERATIONS, type OperationName } from '../../src/exchange/operations.ts';
import { createTransport } from '../../src/exchange/transport.ts';
import type { WireRequest } from '../../src/exchange/wire.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import {
  createSimulatedExchange,
  type ExchangeOptions,
  type SimulatedExchange,
} from '../../src/simulator/simulated-exchange.ts';
import { type Sent, signed } from '../simulator/raw-client.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** What came of a request, told alike for both sides. */
export type Outcome =
  | { readonly kind: 'done'; readonly value: unknown }
  | {
      readonly kind: 'refused';
      readonly status: number | null;
      /** Null where the answer has none. */
      readonly code: number | null;
      readonly errors: Readonly<Record<string, readonly string[]>>;
    }
  /** The client has not sent it: an argument, in the document's spelling, is not allowed. */
  | { readonly kind: 'not-sent'; readonly field: string };

/** One way to use the exchange. Fields are written as the document writes them. */
export interface Side {
  readonly kind: 'client' | 'raw';
  readonly exchange: SimulatedExchange;
  readonly ask: (operation: OperationName, fields?: Fields, key?: string) => Promise<Outcome>;
}

export interface ClientSide extends Side {
  readonly kind: 'client';
  readonly client: Client;
  readonly url: string;
  /** What went over the wire. */
  readonly sent: readonly WireRequest[];
  readonly close: () => Promise<void>;
}

export interface RawSide extends Side {
  readonly kind: 'raw';
  /** Any request, with the status and the JSON value of its answer. */
  readonly send: (sent: Sent) => { readonly status: number; readonly value: unknown };
}

const SPELLINGS = {
  client_order_id: 'clientOrderId',
  unique_id: 'uniqueId',
  timeout: 'timeoutSeconds',
} as const;
const spell = (field: string): string => SPELLINGS[field as keyof typeof SPELLINGS] ?? field;
const spellBack = (argument: string): string =>
  Object.entries(SPELLINGS).find(([, spelling]) => spelling === argument)?.[0] ?? argument;

/** Fields of the document as arguments of the client. The document counts a buy in the quote currency. */
function argumentsOf(operation: OperationName, fields: Fields): Fields {
  const isBuy = operation === 'createStockMarketOrder' && fields['side'] !== 'sell';
  return Object.fromEntries(
    Object.entries(isBuy ? { ...fields, amountIn: 'quote' } : fields).map(([field, value]) => {
      const isSeconds = field === 'timeout' && typeof value === 'string';
      return [spell(field), isSeconds ? Number(value) : value];
    }),
  );
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof ArgumentError) return { kind: 'not-sent', field: spellBack(error.argument) };
  if (!(error instanceof ApiError)) throw error;
  const { status } = error;
  if (error instanceof RefusedError)
    return { kind: 'refused', status, code: error.code, errors: error.fields };
  return { kind: 'refused', status, code: null, errors: {} };
}

/** The client over real HTTP. */
export async function openClientSide(options: ExchangeOptions): Promise<ClientSide> {
  const clock = createSystemClock();
  const listen = { host: '127.0.0.1', port: 0 };
  const server = await startSimulatedServer({ clock, listen, exchange: options });
  const wire = createTransport({ clock: createSystemClock(), bases: [server.url], connections: 4 });
  const sent: WireRequest[] = [];
  let key = 'demo-key';
  const client = createClient({
    bases: [server.url],
    credentials: () => ({ key, secret: 'demo-secret' }),
    nonce: 'increasing',
    clock,
    accessToken: () => 'demo-token',
    transport: {
      ...wire,
      send(request, settled) {
        sent.push(request);
        return wire.send(request, settled);
      },
    },
  });
  return {
    kind: 'client',
    exchange: server.exchange,
    client,
    url: server.url,
    sent,
    async ask(operation, fields = {}, as = 'demo-key') {
      key = as;
      const isPublic = OPERATIONS[operation].authentication === 'none';
      const call = client[operation] as (request?: unknown) => Promise<unknown>;
      try {
        return { kind: 'done', value: await (isPublic ? call() : call(argumentsOf(operation, fields))) };
      } catch (error) {
        return outcomeOf(error);
      }
    },
    async close() {
      await client.close();
      await server.close();
    },
  };
}

/** Raw requests to an exchange in this process. */
export function openRawSide(options: ExchangeOptions): RawSide {
  const exchange = createSimulatedExchange(options);
  const send = (sent: Sent) => {
    const { status, body } = exchange.handle(sent, Date.now());
    return { status, value: body === '' ? '' : (JSON.parse(body) as unknown) };
  };
  return {
    kind: 'raw',
    exchange,
    send,
    async ask(operation, fields = {}, key = 'demo-key') {
      const { status, value } = send(requestOf(operation, fields, key));
      if (status < 300) return { kind: 'done', value };
      const { code = null, errors = {} } = value as { code?: number; errors?: Record<string, string[]> };
      return { kind: 'refused', status, code, errors };
    },
  };
}

/** A request as the document wants it. */
export function requestOf(operation: OperationName, fields: Fields = {}, key = 'demo-key'): Sent {
  const { method, path, authentication } = OPERATIONS[operation];
  if (authentication === 'none') return { method, path, headers: {}, body: '' };
  if (authentication === 'signed') return signed(fields, { path, key });
  const headers = { authorization: 'Bearer demo-token', 'content-type': 'application/json' };
  return { method, path, headers, body: JSON.stringify(fields) };
}
