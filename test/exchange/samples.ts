import type { Client, OrderHistoryOptions } from '../../src/exchange/client.ts';
import { OPERATIONS, type Operation, type OperationName } from '../../src/exchange/operations.ts';

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
  /** What the call resolves with. */
  readonly value: unknown;
}

export const ORDER = {
  order_id: 4_180_284_841,
  client_order_id: 'bot-1.7_a',
  market: 'BTC_USDT',
  side: 'buy',
  type: 'stock market',
  timestamp: 1_700_000_000.123_456,
  deal_money: '60',
  deal_stock: '0.00127',
  amount: '60',
  left: '0',
  deal_fee: '0.06',
  price: '0',
  postOnly: false,
  ioc: false,
  status: 'FILLED',
  stp: 'no',
  positionSide: 'BOTH',
  rpi: false,
  field_of_tomorrow: { kept: true },
};

export const ORDER_REQUEST = {
  market: 'BTC_USDT',
  side: 'buy',
  amount: '60',
  amountIn: 'quote',
  clientOrderId: 'bot-1.7_a',
  stp: 'cancel_new',
} as const;

export const WITHDRAWAL = {
  ticker: 'USDT',
  amount: '10',
  address: 'TXyz',
  uniqueId: 'w-1',
  network: 'TRC20',
};

const CODE = {
  amount: '0.002',
  code: 'WBc11fSENDme',
  date: 1_700_000_000,
  status: 'Activated',
  ticker: 'BTC',
};
export const CODES = {
  total: 2,
  data: [
    { ...CODE, external_id: 'e-1' },
    { ...CODE, code: 'WBd22', status: 'New', external_id: null },
  ],
  limit: 100,
  offset: 10_000,
};

export const ADDRESS = {
  account: { address: 'bc1qxyz', memo: '' },
  required: {
    fixedFee: '0',
    flexFee: { maxFee: '0', minFee: '0', percent: '0' },
    maxAmount: '0',
    minAmount: '0.0001',
  },
};

export const POOL = {
  data: {
    connection_links: ['stratum+tcp://pool.example:3333'],
    location: 'EU',
    assets: ['BTC'],
    reward_schemes: ['FPPS'],
    workers: 12,
    current_hash_rate: '1000',
    last7days_hash_rate: [{ timestamp: 1_700_000_000, hashrate: '900' }],
    blocks: [{ block_found_at: 1_700_000_000, block_height: 820_000 }],
  },
};

const HASHRATE = {
  data: { account: 'rig', hashrate: [{ timestamp: 1_700_000_000, hashrate: '104005000000000' }] },
};
export const TIMER = {
  market: 'BTC_USDT',
  startTime: 1_700_000_000,
  cancellationTime: 1_700_000_060,
  types: null,
};
const RANGE = { account: 'rig', from: 1_700_000_000, to: 1_700_007_200, interval: '1h' };
/** Stands for any number of milliseconds. */
const MILLISECONDS = {
  asymmetricMatch: (value: unknown) => typeof value === 'number' && value > 0 && value < 10_000,
};

/** In the order of the document: the arguments, null for none; the fields that are sent for them; a good reply. */
const TABLE: Readonly<
  Record<OperationName, readonly [given: object | null, fields: string, reply: unknown]>
> = {
  createStockMarketOrder: [
    ORDER_REQUEST,
    '"market":"BTC_USDT","side":"buy","amount":"60","client_order_id":"bot-1.7_a","stp":"cancel_new"',
    ORDER,
  ],
  orderHistory: [
    { market: 'BTC_USDT', limit: 10 },
    '"market":"BTC_USDT","limit":10',
    { BTC_USDT: [{ id: 1, anything: ['kept'] }] },
  ],
  withdrawPay: [
    WITHDRAWAL,
    '"ticker":"USDT","amount":"10","address":"TXyz","unique_id":"w-1","network":"TRC20"',
    [],
  ],
  syncKillSwitch: [
    { market: 'BTC_USDT', timeoutSeconds: 60, types: ['spot', 'margin'] },
    '"market":"BTC_USDT","timeout":"60","types":["spot","margin"]',
    TIMER,
  ],
  myCodes: [{ limit: 2, offset: 1 }, '"limit":2,"offset":1', CODES],
  miningHashrate: [RANGE, '"account":"rig","from":1700000000,"to":1700007200,"interval":"1h"', HASHRATE],
  createNewAddress: [{ ticker: 'XRP', network: 'XRP' }, '"ticker":"XRP","network":"XRP"', ADDRESS],
  miningPool: [null, '', POOL],
  ping: [null, '', ['pong']],
};

export const SAMPLES = (Object.keys(TABLE) as OperationName[]).map(sampleOf);

export function sampleOf(name: OperationName): Sample {
  const [given, fields, reply] = TABLE[name];
  const { method, path, authentication, effect } = OPERATIONS[name];
  const movesMoney = effect === 'moves-money';
  const value = name === 'ping' ? MILLISECONDS : reply;
  const call: Sample['call'] = (client, options) => {
    const ask = client[name] as (...given: readonly unknown[]) => Promise<unknown>;
    return given === null ? ask(options) : ask(given, options);
  };
  return { name, method, path, authentication, movesMoney, fields, reply, value, call };
}
