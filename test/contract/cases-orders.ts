import { expect } from 'vitest';
import { createSystemClock } from '../../src/clock.ts';
import { startSimulatedServer } from '../../src/simulator/server.ts';
import { send } from '../simulator/raw-client.ts';
import { requestOf } from './sides.ts';
import {
  type AnySide,
  but,
  type Case,
  done,
  type Refusal,
  refuses,
  refusesWithout,
  without,
} from './steps.ts';

const OPERATION = 'createStockMarketOrder';
const row = (kindAndName: string) => `${OPERATION} ${kindAndName}`;

function refusal(title: string, rows: readonly string[], fields: object, expected: Refusal): Case {
  return {
    title,
    rows: rows.map(row),
    options: { markets: ['BTC_USDT'] },
    check: (side) => refuses(side, OPERATION, but(OPERATION, { ...fields }), expected),
  };
}

const required = (field: string): Case => ({
  title: `an order without ${field} is refused with code 30`,
  rows: [row('code 30 required'), row(`request ${field}`), row('status 422')],
  check: (side) => refusesWithout(side, OPERATION, field),
});

const balances = (side: AnySide) => side.exchange.books().accounts['main'];

export const ORDER_CASES: readonly Case[] = [
  ...['market', 'side', 'amount'].map(required),
  {
    title: 'a buy counts its amount in the quote currency, and a sell in the base currency',
    rows: [row('request amount'), row('request side'), row('status 200')],
    options: { balances: { main: { BTC: '1', USDT: '1000' } }, terms: { BTC_USDT: { feeRate: '0' } } },
    async check(side) {
      await done(side, OPERATION, but(OPERATION, { side: 'buy', amount: '600', client_order_id: 'buy' }));
      expect(balances(side)).toEqual({ BTC: '1.01', USDT: '400' });
      await done(side, OPERATION, but(OPERATION, { side: 'sell', amount: '0.01', client_order_id: 'sell' }));
      expect(balances(side)).toEqual({ BTC: '1', USDT: '1000' });
    },
  },
  {
    title: 'a filled order costs its fee, in the quote currency',
    rows: [row('reply deal_fee')],
    options: { balances: { main: { BTC: '1', USDT: '1000' } }, terms: { BTC_USDT: { feeRate: '0.01' } } },
    async check(side) {
      const buy = but(OPERATION, { side: 'buy', amount: '600', client_order_id: 'buy' });
      expect(await done(side, OPERATION, buy)).toMatchObject({ deal_fee: '6', left: '0' });
      expect(balances(side)).toEqual({ BTC: '1.01', USDT: '394' });
      const sell = but(OPERATION, { side: 'sell', amount: '0.01', client_order_id: 'sell' });
      expect(await done(side, OPERATION, sell)).toMatchObject({ deal_fee: '6' });
      expect(balances(side)).toEqual({ BTC: '1', USDT: '988' });
    },
  },
  {
    title: 'the amount may be a number',
    rows: [row('request amount')],
    async check(side) {
      const order = await done(side, OPERATION, but(OPERATION, { amount: 60 }));
      expect(order).toMatchObject({ amount: '60', market: 'BTC_USDT' });
    },
  },
  {
    title: 'client_order_id may have letters, dashes, digits, dots and underscores, and comes back',
    rows: [row('request client_order_id'), row('limit client_order_id')],
    async check(side) {
      const client_order_id = 'aZ-09._';
      expect(await done(side, OPERATION, but(OPERATION, { client_order_id }))).toMatchObject({
        client_order_id,
      });
    },
  },
  {
    title: 'client_order_id is an empty string where none was given',
    rows: [row('reply client_order_id'), row('request client_order_id')],
    async check(side) {
      const order = await done(side, OPERATION, without(OPERATION, 'client_order_id'));
      expect(order).toMatchObject({ client_order_id: '' });
    },
  },
  {
    title: 'client_order_id is unique',
    rows: [row('limit client_order_id'), row('request client_order_id')],
    async check(side) {
      await done(side, OPERATION, but(OPERATION, {}));
      const expected = { status: 400, code: 36, field: 'client_order_id', sent: true };
      await refuses(side, OPERATION, but(OPERATION, {}), expected);
    },
  },
  ...['no', 'cancel_both', 'cancel_new', 'cancel_old'].map(
    (stp): Case => ({
      title: `stp may be ${stp}`,
      rows: [row('request stp'), row('reply stp')],
      check: async (side) =>
        expect(await done(side, OPERATION, but(OPERATION, { stp }))).toMatchObject({ stp }),
    }),
  ),
  refusal(
    'stp may be nothing else',
    ['request stp'],
    { stp: 'maybe' },
    { status: 422, code: 30, field: 'stp' },
  ),
  refusal(
    'a side other than buy and sell is refused with code 30',
    ['code 30 side', 'request side'],
    { side: 'hold' },
    { status: 422, code: 30, field: 'side', message: /buy or sell/ },
  ),
  refusal(
    'a market that is not available is refused with code 31',
    ['code 31 not available', 'request market', 'status 400'],
    { market: 'NO_MARKET' },
    { status: 400, code: 31, field: 'market', message: /not available/, sent: true },
  ),
  refusal(
    'an empty market is refused with code 31',
    ['code 31 empty'],
    { market: '' },
    { status: 422, code: 31, field: 'market', message: /empty string/ },
  ),
  refusal(
    'an amount that is no number is refused with code 32',
    ['code 32 not numeric', 'request amount'],
    { amount: 'much' },
    { status: 422, code: 32, field: 'amount', message: /numeric string or number/ },
  ),
  refusal(
    'an amount beyond the balance is refused with code 32',
    ['code 32 balance', 'status 400'],
    { amount: '99999999' },
    { status: 400, code: 32, field: 'amount', message: /not enough balance/i, sent: true },
  ),
  refusal(
    'a buy below the minimum total is refused with code 32 and the step',
    ['code 32 minimum', 'rule minimum total'],
    { amount: '4.99' },
    {
      status: 400,
      code: 32,
      field: 'amount',
      message: /less than min amount 5\nMin amount step = 0\.01/,
      sent: true,
    },
  ),
  refusal(
    'a sell below the minimum amount is refused with code 32 and the step',
    ['code 32 minimum', 'rule minimum amount'],
    { side: 'sell', amount: '0.00009' },
    { status: 400, code: 32, field: 'amount', message: /min amount 0\.0001\nMin amount step = /, sent: true },
  ),
  refusal(
    'an amount off the step is refused with code 32 and the step',
    ['code 32 minimum'],
    { side: 'sell', amount: '0.0100001' },
    { status: 400, code: 32, field: 'amount', message: /Min amount step = 0\.000001/, sent: true },
  ),
  refusal(
    'a client_order_id that is no string is refused with code 36',
    ['code 36 string', 'status 422'],
    { client_order_id: 7 },
    { status: 422, code: 36, field: 'client_order_id', message: /must be a string/ },
  ),
  refusal(
    'a client_order_id with other characters is refused with code 36',
    ['request client_order_id', 'limit client_order_id'],
    { client_order_id: 'a/b' },
    { status: 422, code: 36, field: 'client_order_id' },
  ),
  {
    title: 'an exchange that is unavailable answers an order with 503',
    rows: [row('status 503')],
    // The exchange itself never is: its server says so for it.
    async check() {
      const listen = { host: '127.0.0.1', port: 0 };
      const server = await startSimulatedServer({ clock: createSystemClock(), listen });
      try {
        server.addFaults([{ kind: 'maintenance' }]);
        expect(await send(server.url, requestOf(OPERATION, but(OPERATION, {})))).toMatchObject({
          status: 503,
        });
      } finally {
        await server.close();
      }
    },
  },
];
