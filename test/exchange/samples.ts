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
  /** What the call resolves with; the reply itself where it is not given. */
  readonly value?: unknown;
}

export const ORDER = {
  order_id: 4_180_284_841,
  client_order_id: 'bot-1.7_a',
  market: 'BTC_USDT',
  side: 'buy',
  type: 'stock market',
  timestamp: 1_700_000_000.123_456,
  deal_money: '50',
  deal_stock: '0.00127',
  amount: '50',
  left: '0',
  deal_fee: '0.05',
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
  amount: '50',
  amountIn: 'quote',
  clientOrderId: 'bot-1.7_a',
  stp: 'cancel_new',
} as const;

export const WITHDRAWAL = {
  ticker: 'USDT',
  amount: '100.000001',
  address: 'TXyz',
  uniqueId: 'w-2024/7',
  network: 'TRC20',
} as const;

export const CODES = {
  total: 2,
  data: [
    {
      amount: '0.002',
      code: 'WBc11fSENDme',
      date: 1_700_000_000,
      status: 'Activated',
      ticker: 'BTC',
      external_id: 'e-1',
    },
    { amount: '5', code: 'WBd22', date: 1_700_000_001, status: 'New', ticker: 'ETH', external_id: null },
  ],
  limit: 100,
  offset: 10_000,
};

export const HASHRATE = {
  data: { account: 'rig', hashrate: [{ timestamp: 1_700_000_000, hashrate: '104005000000000' }] },
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

export const TIMER = {
  market: 'BTC_USDT',
  startTime: 1_700_000_000,
  cancellationTime: 1_700_000_060,
  types: null,
};

const MOVE_MONEY: readonly OperationName[] = ['createStockMarketOrder', 'withdrawPay'];

function sample(
  name: OperationName,
  call: Sample['call'],
  reply: unknown,
  fields = '',
  more: Pick<Sample, 'value'> = {},
): Sample {
  const { method, path, authentication } = OPERATIONS[name];
  const movesMoney = MOVE_MONEY.includes(name);
  return { name, call, method, path, authentication, movesMoney, fields, reply, ...more };
}

const SWITCH = { market: 'BTC_USDT', timeoutSeconds: 60, types: ['spot', 'margin'] } as const;
const RANGE = { account: 'rig', from: 1_700_000_000, to: 1_700_086_400, interval: '1h' };
/** Stands for any number of milliseconds. */
const MILLISECONDS = {
  asymmetricMatch: (value: unknown) => typeof value === 'number' && value > 0 && value < 10_000,
};

/** The nine operations in the order of the document. */
export const SAMPLES: readonly Sample[] = [
  sample(
    'createStockMarketOrder',
    (client, options) => client.createStockMarketOrder(ORDER_REQUEST, options),
    ORDER,
    '"market":"BTC_USDT","side":"buy","amount":"50","client_order_id":"bot-1.7_a","stp":"cancel_new"',
  ),
  sample(
    'orderHistory',
    (client, options) => client.orderHistory({ market: 'BTC_USDT', limit: 10 }, options),
    { BTC_USDT: [{ id: 1, anything: ['kept'] }] },
    '"market":"BTC_USDT","limit":10',
  ),
  sample(
    'withdrawPay',
    (client, options) => client.withdrawPay(WITHDRAWAL, options),
    [],
    '"ticker":"USDT","amount":"100.000001","address":"TXyz","unique_id":"w-2024/7","network":"TRC20"',
  ),
  sample(
    'syncKillSwitch',
    (client, options) => client.syncKillSwitch(SWITCH, options),
    TIMER,
    '"market":"BTC_USDT","timeout":"60","types":["spot","margin"]',
  ),
  sample(
    'myCodes',
    (client, options) => client.myCodes({ limit: 100, offset: 10_000 }, options),
    CODES,
    '"limit":100,"offset":10000',
  ),
  sample(
    'miningHashrate',
    (client, options) => client.miningHashrate(RANGE, options),
    HASHRATE,
    '"account":"rig","from":1700000000,"to":1700086400,"interval":"1h"',
  ),
  sample(
    'createNewAddress',
    (client, options) => client.createNewAddress({ ticker: 'BTC', type: 'p2sh-segwit' }, options),
    ADDRESS,
    '"ticker":"BTC","type":"p2sh-segwit"',
  ),
  sample('miningPool', (client, options) => client.miningPool(options), POOL),
  sample('ping', (client, options) => client.ping(options), ['pong'], '', { value: MILLISECONDS }),
];

export const sampleOf = (name: OperationName): Sample => {
  const found = SAMPLES.find((known) => known.name === name);
  if (found === undefined) throw new Error(`no sample of ${name}`);
  return found;
};
