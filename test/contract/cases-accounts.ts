import { expect } from 'vitest';
import type { OperationName } from '../../src/exchange/operations.ts';
import { but, type Case, done, type Refusal, refuses, without } from './steps.ts';

const OPTIONS = { newAddresses: true };

function refusal(
  title: string,
  operation: OperationName,
  rows: readonly string[],
  fields: object,
  expected: Omit<Refusal, 'status' | 'code'> & Partial<Refusal>,
): Case {
  return {
    title,
    rows: rows.map((name) => `${operation} ${name}`),
    options: OPTIONS,
    check: (side) =>
      refuses(side, operation, but(operation, { ...fields }), { status: 422, code: 30, ...expected }),
  };
}

const required = (operation: OperationName, field: string): Case => ({
  title: `${operation} without ${field} is refused`,
  rows: [`${operation} request ${field}`],
  options: OPTIONS,
  check: (side) => refuses(side, operation, without(operation, field), { status: 422, code: 30, field }),
});

const address = (title: string, rows: readonly string[], fields: object, prefix: RegExp): Case => ({
  title,
  rows: rows.map((name) => `createNewAddress ${name}`),
  options: OPTIONS,
  async check(side) {
    const made = await done(side, 'createNewAddress', { ...fields });
    expect(made).toMatchObject({ account: { address: expect.stringMatching(prefix) } });
  },
});

const WITHDRAWALS: readonly Case[] = [
  ...['ticker', 'amount', 'address', 'unique_id'].map((field) => required('withdrawPay', field)),
  {
    title: 'the receiver gets the amount, and the fee comes on top of it',
    rows: ['withdrawPay rule fee on top', 'withdrawPay request amount', 'withdrawPay request address'],
    options: { balances: { main: { USDT: '100' } } },
    async check(side) {
      await done(side, 'withdrawPay', but('withdrawPay', {}));
      expect(side.exchange.withdrawals()).toMatchObject([{ amount: '10', fee: '3.2', address: 'TXyz' }]);
      expect(side.exchange.books().accounts['main']).toEqual({ USDT: '86.8' });
    },
  },
  {
    title: 'USDT is withdrawn over ERC20 where no network is given, and else over the given one',
    rows: ['withdrawPay request network'],
    async check(side) {
      await done(side, 'withdrawPay', without('withdrawPay', 'network'));
      await done(side, 'withdrawPay', but('withdrawPay', { unique_id: 'w-2', network: 'OMNI' }));
      expect(side.exchange.withdrawals().map(({ network }) => network)).toEqual(['ERC20', 'OMNI']);
    },
  },
  {
    title: 'a unique_id makes one withdrawal',
    rows: ['withdrawPay request unique_id', 'withdrawPay limit unique_id'],
    async check(side) {
      const fields = but('withdrawPay', {});
      await done(side, 'withdrawPay', fields);
      await refuses(side, 'withdrawPay', fields, { status: 400, code: 30, field: 'unique_id', sent: true });
    },
  },
  {
    title: 'a fiat currency is withdrawn through its provider',
    rows: ['withdrawPay request provider'],
    async check(side) {
      const fiat = { ticker: 'EUR', amount: '10', address: 'card-token', unique_id: 'w-1', provider: 'SEPA' };
      await done(side, 'withdrawPay', fiat);
      expect(side.exchange.withdrawals()).toMatchObject([{ provider: 'SEPA', network: null }]);
    },
  },
  refusal(
    'a fiat currency without a provider is refused',
    'withdrawPay',
    ['request provider'],
    { ticker: 'EUR', network: undefined },
    { field: 'provider', sent: true },
  ),
  refusal(
    'a provider that the currency does not have is refused',
    'withdrawPay',
    ['request provider'],
    { ticker: 'EUR', network: undefined, provider: 'NOBODY' },
    { status: 400, field: 'provider', sent: true },
  ),
  refusal(
    'a network that the currency does not have is refused',
    'withdrawPay',
    ['request network'],
    { network: 'NOWHERE' },
    { status: 400, field: 'network', sent: true },
  ),
  refusal(
    'an amount beyond the balance less the fee is not withdrawn',
    'withdrawPay',
    ['rule fee on top'],
    { amount: '999998' },
    { status: 400, code: 32, field: 'amount', sent: true },
  ),
  refusal(
    'a currency whose can_deposit is false is not withdrawn',
    'withdrawPay',
    ['request ticker'],
    { ticker: 'XMR', amount: '1', network: 'XMR' },
    { status: 400, field: 'ticker', message: /can_deposit/, sent: true },
  ),
];

const LISTS: readonly Case[] = [
  {
    title: 'limit and offset choose the page of the codes',
    rows: ['myCodes request limit', 'myCodes request offset', 'myCodes limit limit', 'myCodes limit offset'],
    options: { codes: 150 },
    async check(side) {
      const page = async (limit: number, offset: number) =>
        (await done(side, 'myCodes', { limit, offset })) as { total: number; data: readonly unknown[] };
      const all = await page(100, 0);
      expect([all.total, all.data.length]).toEqual([150, 100]);
      expect((await page(1, 7)).data).toEqual([all.data[7]]);
      expect((await page(100, 100)).data).toHaveLength(50);
      expect((await page(1, 10_000)).data).toEqual([]);
    },
  },
  ...(
    [
      ['limit', 0],
      ['limit', 101],
      ['offset', -1],
      ['offset', 10_001],
      ['limit', '10'],
    ] as const
  ).map(([field, value]) =>
    refusal(
      `codes with ${field} ${JSON.stringify(value)} are refused`,
      'myCodes',
      [`request ${field}`, `limit ${field}`],
      { [field]: value },
      { field },
    ),
  ),
  {
    title: 'a hashrate is one point for each interval from from to to, of the account',
    rows: ['account', 'from', 'to', 'interval'].map((field) => `miningHashrate request ${field}`),
    async check(side) {
      const reply = await done(side, 'miningHashrate', but('miningHashrate', {}));
      const { account, hashrate } = (
        reply as { data: { account: string; hashrate: { timestamp: number }[] } }
      ).data;
      expect(account).toBe('rig');
      expect(hashrate.map(({ timestamp }) => timestamp)).toEqual([1_700_002_800, 1_700_006_400]);
      const finer = await done(side, 'miningHashrate', but('miningHashrate', { interval: '30m' }));
      expect((finer as { data: { hashrate: unknown[] } }).data.hashrate).toHaveLength(4);
    },
  },
  refusal(
    'an interval that is none is refused',
    'miningHashrate',
    ['request interval'],
    { interval: 'often' },
    { field: 'interval' },
  ),
  refusal(
    'a time range that ends before it begins has code 422',
    'miningHashrate',
    ['code 422 timestamp'],
    { from: 1_700_007_200, to: 1_700_000_000 },
    { code: 422, field: 'from', message: /^$/ },
  ),
  refusal(
    'a time range that has not begun has code 422',
    'miningHashrate',
    ['code 422 timestamp'],
    { from: 4_000_000_000, to: 4_000_003_600 },
    { code: 422, field: 'from', message: /^$/, sent: true },
  ),
];

const ADDRESSES: readonly Case[] = [
  required('createNewAddress', 'ticker'),
  {
    title: 'nobody may create addresses before it is enabled for the account',
    rows: ['createNewAddress rule disabled by default'],
    async check(side) {
      const outcome = await side.ask('createNewAddress', but('createNewAddress', {}));
      expect(outcome).toMatchObject({ kind: 'refused', status: 403 });
      expect(side.exchange.addresses()).toEqual([]);
    },
  },
  {
    title: 'every request makes another address',
    rows: ['createNewAddress rule even when unused', 'createNewAddress request ticker'],
    options: OPTIONS,
    async check(side) {
      for (let times = 0; times < 3; times += 1) await done(side, 'createNewAddress', { ticker: 'BTC' });
      const addresses = side.exchange.addresses().map((made) => made.address);
      expect(new Set(addresses).size).toBe(3);
    },
  },
  address(
    'an address of USDT is for ERC20 where no network is given',
    ['request network'],
    { ticker: 'USDT' },
    /^0x/,
  ),
  address(
    'an address is for the given network',
    ['request network'],
    { ticker: 'USDT', network: 'TRC20' },
    /^T/,
  ),
  address('an address of BTC is bech32 where no type is given', ['request type'], { ticker: 'BTC' }, /^bc1q/),
  address(
    'an address of LTC is bech32 where no type is given',
    ['request type'],
    { ticker: 'LTC' },
    /^ltc1q/,
  ),
  address('an address has the given type', ['request type'], { ticker: 'BTC', type: 'p2sh-segwit' }, /^3/),
  refusal(
    'a type is refused where a currency has none',
    'createNewAddress',
    ['request type'],
    { ticker: 'ETH', network: undefined, type: 'bech32' },
    { status: 400, field: 'type' },
  ),
  refusal(
    'a type that is none is refused',
    'createNewAddress',
    ['request type'],
    { ticker: 'BTC', network: undefined, type: 'legacy' },
    { status: 400, field: 'type' },
  ),
];

export const ACCOUNT_CASES: readonly Case[] = [...WITHDRAWALS, ...LISTS, ...ADDRESSES];
