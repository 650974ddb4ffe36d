import type { Client, OrderHistoryOptions } from '../../src/exchange/client.ts';
import { OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';
import type { Reply, StockMarketOrderRequest, WithdrawPayRequest } from '../../src/exchange/schemas.ts';
import { createTrader } from '../simulator/trader.ts';

/**
 * One call of an operation with all that it can be given, what must go over the wire for it, and a good answer. That
 * path, method and authentication are those of the document, the contract suite finds out at the simulated exchange.
 */
export interface Sample extends Pick<Operation, 'method' | 'path' | 'authentication'> {
  readonly name: OperationName;
  readonly call: (client: Client, options?: OrderHistoryOptions) => Promise<unknown>;
  readonly movesMoney: boolean;
  /** The body without `request` and `nonce`, as text. */
  readonly fields: string;
  readonly reply: unknown;
  readonly value: unknown;
}

export type Fields = Readonly<Record<string, unknown>>;

const FIELDS: Readonly<Record<OperationName, string>> = {
  createStockMarketOrder:
    '"market":"BTC_USDT","side":"buy","amount":"60","client_order_id":"bot-1.7_a","stp":"cancel_new"',
  orderHistory: '"market":"BTC_USDT","limit":10',
  withdrawPay: '"ticker":"USDT","amount":"10","address":"TXyz","unique_id":"w-1","network":"TRC20"',
  syncKillSwitch: '"market":"BTC_USDT","timeout":"60","types":["spot","margin"]',
  myCodes: '"limit":2,"offset":1',
  miningHashrate: '"account":"rig","from":1700000000,"to":1700007200,"interval":"1h"',
  createNewAddress: '"ticker":"XRP","network":"XRP"',
  miningPool: '',
  ping: '',
};

/** The fields of the sample of an operation, as the document spells them. */
export const fieldsOf = (name: OperationName) => JSON.parse(`{${FIELDS[name]}}`) as Fields;

export const SPELLINGS: Fields = {
  client_order_id: 'clientOrderId',
  unique_id: 'uniqueId',
  timeout: 'timeoutSeconds',
};

/** Fields of the document as arguments of the client. The document counts a buy in the quote currency. */
export function argumentsOf(name: OperationName, fields: Fields = fieldsOf(name)): Fields {
  const isBuy = name === 'createStockMarketOrder' && fields['side'] !== 'sell';
  return Object.fromEntries(
    Object.entries(isBuy ? { ...fields, amountIn: 'quote' } : fields).map(([field, value]) => {
      const isSeconds = field === 'timeout' && typeof value === 'string';
      return [SPELLINGS[field] ?? field, isSeconds ? Number(value) : value];
    }),
  );
}

export const ORDER_REQUEST = argumentsOf('createStockMarketOrder') as unknown as StockMarketOrderRequest;
export const WITHDRAWAL = argumentsOf('withdrawPay') as unknown as WithdrawPayRequest;

const trader = createTrader({ newAddresses: true });

function replyTo<Name extends OperationName>(name: Name): Reply<Name> {
  const { path, authentication } = OPERATIONS[name];
  const fields = fieldsOf(name);
  const ask = {
    none: () => trader.get(path),
    bearer: () => trader.history(fields),
    signed: () => trader.ask(path, fields),
  };
  return ask[authentication]().value as Reply<Name>;
}

export const ORDER = { ...replyTo('createStockMarketOrder'), field_of_tomorrow: { kept: true } };
export const CODES = replyTo('myCodes');
export const ADDRESS = replyTo('createNewAddress');
export const POOL = replyTo('miningPool');
export const TIMER = {
  market: 'BTC_USDT',
  startTime: 1_700_000_000,
  cancellationTime: 1_700_000_060,
  types: null,
};

const MILLISECONDS = {
  asymmetricMatch: (value: unknown) => typeof value === 'number' && value > 0 && value < 10_000,
};

export function sampleOf(name: OperationName): Sample {
  const { method, path, authentication, effect } = OPERATIONS[name];
  const movesMoney = effect === 'moves-money';
  const reply = name === 'createStockMarketOrder' ? ORDER : replyTo(name);
  const value = name === 'ping' ? MILLISECONDS : reply;
  const call: Sample['call'] = (client, options) => {
    const ask = client[name] as (...given: readonly unknown[]) => Promise<unknown>;
    return authentication === 'none' ? ask(options) : ask(argumentsOf(name), options);
  };
  return { name, method, path, authentication, movesMoney, fields: FIELDS[name], reply, value, call };
}

export const SAMPLES = (Object.keys(FIELDS) as OperationName[]).map(sampleOf);
